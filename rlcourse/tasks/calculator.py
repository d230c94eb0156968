"""Word problems with numbers too large for the embedded model, and a calculator to hand them to.

A turn is a calculation, "12 * 17", which the calculator answers, or the answer, "#### 204", which
ends the episode. The stories are those of `word_problems`; what differs is the size of the numbers.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from random import Random

from rlcourse.algorithms.environments import calculator
from rlcourse.errors import UserError
from rlcourse.tasks.environment import Environment, Reply
from rlcourse.tasks.problem import Problem, Task
from rlcourse.tasks.rewards import extract_answer
from rlcourse.tasks.word_problems import (
    SFT_SLOP,
    TEACHERS,
    Level,
    Slop,
    WordProblem,
    draw,
    sloppy_answer,
)

# One and two steps; products and sums far above the 199 that the base model has practiced up to.
LARGE = Level(steps=(0.4, 0.6, 0.0), few=(3, 25), some=(10, 60), many=(60, 199), limit=999)


class CalculatorEnvironment(Environment):
    """One word problem and a calculator: the reward is 1 for the right answer, and 0 for others.

    `calculate(text)` is the tool: what it says to a turn that holds no answer.
    """

    def __init__(self, problem: Problem, calculate: Callable[[str], str] = calculator):
        self.problem, self.calculate = problem, calculate

    def begin(self) -> str:
        """The question."""
        return self.problem.question

    def respond(self, text: str) -> Reply:
        """The calculator's word, or the end of the episode where `text` holds an answer."""
        answer = extract_answer(text)
        if answer is None:
            return Reply(self.calculate(text))
        return Reply("", reward=float(answer == self.problem.target), done=True)


@dataclass(frozen=True)
class Demonstration:
    """What a program would write: the turns of one episode, with the answer as the last one."""

    problem: Problem
    turns: tuple[str, ...]

    @property
    def question(self) -> str:
        """The first words of the episode."""
        return self.problem.question

    @property
    def answer(self) -> str:
        """All turns, as one text."""
        return "\n".join(self.turns)


def load(
    seed: int = 0,
    train_size: int = 1200,
    evaluation_size: int = 256,
    teacher: str = "sloppy",
) -> Task:
    """The task of lesson 14: word problems with large numbers, in an environment with a calculator.

    Args:
        seed: another seed draws other problems; no seed ever trains on what another evaluates.
        teacher: whose demonstrations supervised fine-tuning gets: "sloppy" or "clean".

    Raises:
        UserError: there is no such teacher.
    """
    if teacher not in TEACHERS:
        raise UserError(f"teacher={teacher!r} is unknown; choose {' or '.join(TEACHERS)}.")
    problems = large_problems(train_size, seed)
    return Task(
        name="calculator",
        train=problems,
        evaluation=large_problems(evaluation_size, seed, "evaluation"),
        demonstrations=tool_demonstrations(problems, seed, TEACHERS[teacher]),
        environment=CalculatorEnvironment,
    )


def large_problems(n: int, seed: int, split: str = "train") -> list[WordProblem]:
    """`n` different problems of `LARGE`, of the split "train" or "evaluation"."""
    return draw(n, seed, LARGE, split, "large")


def tool_demonstrations(
    problems: Sequence[WordProblem], seed: int, slop: Slop = SFT_SLOP
) -> list[Demonstration]:
    """For each problem the calculations and the answer of a careless teacher.

    It has the habits of `slop`, as in `word_problems`, and takes each result from the calculator.
    """
    rng = Random(f"tool demonstrations:{seed}")
    shown = []
    for problem in problems:
        *steps, last = sloppy_answer(problem, slop, rng).splitlines()
        calls = [step.split(" = ")[0] for step in steps]
        answer = f"{last.rpartition(' ')[0]} {calculator(calls[-1])}"
        shown.append(Demonstration(problem, (*calls, answer)))
    return shown
