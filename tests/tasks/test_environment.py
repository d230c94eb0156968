"""Environments: what is said of one that is not right, and the calculator's."""

import pytest
import torch

from rlcourse.errors import UserError
from rlcourse.tasks import CalculatorEnvironment, Environment, Problem, Reply
from rlcourse.tasks.calculator import large_problems, tool_demonstrations
from rlcourse.tasks.word_problems import CLEAN


class Guess(Environment):
    def begin(self):
        self.tries = 0
        return "Which number?"

    def respond(self, text):
        self.tries += 1
        return Reply("No.", done=self.tries == 2) if text != "7" else Reply("Yes.", 1, True)


def test_an_episode_is_begun_played_and_over():
    guess = Guess()
    assert guess.reset() == "Which number?"
    assert guess.step("3") == ("No.", 0.0, False)
    assert guess.step("7") == ("Yes.", 1.0, True)
    with pytest.raises(UserError, match="call reset"):
        guess.step("7")
    guess.reset()
    assert guess.tries == 0


def test_a_step_before_the_first_reset_is_refused():
    with pytest.raises(UserError, match=r"Guess is running: call reset\(\)"):
        Guess().step("7")


@pytest.mark.parametrize(
    "reply",
    [True, None, ("No.", 0.0), (7, 0.0, False), ("No.", "much", False),
     ("No.", float("nan"), False), ("No.", 0.0, torch.zeros(2))],
)  # fmt: skip
def test_a_reply_that_is_none_is_named_with_its_class(reply):
    class Odd(Guess):
        def respond(self, text):
            return reply

    odd = Odd()
    odd.reset()
    with pytest.raises(UserError, match=r"return Reply\(observation, reward, done\)") as error:
        odd.step("7")
    assert "Odd.respond" in str(error.value)


def test_rewards_may_be_tensors_and_done_a_number():
    class Loose(Guess):
        def respond(self, text):
            return "No.", torch.tensor(0.5), 1

    loose = Loose()
    loose.reset()
    assert loose.step("7") == ("No.", 0.5, True)


def test_what_is_not_written_is_asked_for():
    class Silent(Environment):
        def begin(self):
            return 7

    with pytest.raises(UserError, match="needs a method begin"):
        Environment().reset()
    with pytest.raises(UserError, match=r"Silent.begin\(\) returned 7"):
        Silent().reset()
    silent = Silent()
    silent.begin = lambda: "Well?"
    silent.reset()
    with pytest.raises(UserError, match=r"needs a method respond\(self, text\)"):
        silent.step("7")


def test_the_calculator_answers_until_an_answer_is_given():
    environment = CalculatorEnvironment(Problem("How much?", "6 * 7 = 42\n#### 42"))
    assert environment.reset() == "How much?"
    assert environment.step("6 * 7") == ("42", 0.0, False)
    assert environment.step("hm") == ("?", 0.0, False)
    assert environment.step("#### 42") == ("", 1.0, True)
    environment.reset()
    assert environment.step("#### 41") == ("", 0.0, True)


def test_careful_demonstrations_solve_every_problem_and_careless_ones_call_all_the_same():
    some = large_problems(60, seed=3)
    for slop, least in (({"slop": CLEAN}, 60), ({}, 1)):
        solved = 0
        for shown in tool_demonstrations(some, 0, **slop):
            environment = CalculatorEnvironment(shown.problem)
            environment.reset()
            replies = [environment.step(turn) for turn in shown.turns]
            assert all(reply.observation.isdigit() for reply in replies[:-1])
            solved += replies[-1].reward
        assert least <= solved and (slop or solved < 40)  # 8 to 20 for seeds 0 to 9


def test_large_problems_are_larger_and_held_out_ones_are_held_out():
    train, held_out = (large_problems(200, 0, split) for split in ("train", "evaluation"))
    assert max(int(p.target) for p in train) > 300
    keys = [{(p.template, p.numbers) for p in part} for part in (train, held_out)]
    assert not keys[0] & keys[1]
