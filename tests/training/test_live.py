"""What a notebook shows while a run trains: true, cheap, and without a say in the run."""

import re
from dataclasses import replace

import pytest
from echo import by_length, echo_policy, echo_recipe, echo_task, quiet, weights

from rlcourse.evaluation import evaluate_policy
from rlcourse.tasks.problem import Problem
from rlcourse.training import run as training
from rlcourse.training import train
from rlcourse.training.measuring import live as module
from rlcourse.training.measuring.live import Live

TIMES = re.compile(r"seconds|per_second")


def without_times(metrics):
    return [{k: v for k, v in step.items() if not TIMES.search(k)} for step in metrics]


class Asked:
    """A clock, and a policy that takes `seconds` of it for an answer."""

    device = echo_policy().device

    def __init__(self, monkeypatch, seconds=0.5):
        self.now, self.seconds, self.times = 100.0, seconds, []
        monkeypatch.setattr(module.time, "monotonic", lambda: self.now)

    def format_prompt(self, question, system=None):
        return question

    def sample(self, prompts, max_tokens, temperature):
        assert len(prompts) == 1 and temperature == 0
        self.times.append(self.now)
        self.now += self.seconds
        return prompts

    def decode(self, prompts):
        return [f"step {len(self.times)} #### {prompts[0]}"]


@pytest.fixture(scope="module")
def before():
    task = echo_task()
    return evaluate_policy(echo_policy(), task.evaluation, samples=4, max_tokens=8)


def test_the_question_is_one_that_the_policy_can_answer_but_does_not(before):
    first, second, third, *others = before.transcripts
    right = replace(first.greedy, correct=True)
    sometimes = (replace(second.greedy, correct=True), *second.samples[1:])
    transcripts = [
        replace(first, greedy=right, samples=(right,) * 4),
        replace(second, greedy=replace(second.greedy, correct=False), samples=sometimes),
        replace(third, greedy=replace(third.greedy, correct=False)),
        *others,
    ]
    live = Live.of(echo_recipe(), None, echo_task(), replace(before, transcripts=transcripts))
    assert live.problem == Problem(second.question, second.answer)
    assert [when for when, *_ in live.answers] == ["before training"]


def test_asking_takes_a_small_share_of_the_time(monkeypatch):
    asked = Asked(monkeypatch)
    live = Live.of(echo_recipe(steps=1000), asked, echo_task(), None)
    for step in range(1, 1001):
        asked.now += 0.2
        live.follow({"step": step, "reward/mean": 0.5})
    spent, passed = len(asked.times) * asked.seconds, asked.now - 100
    assert len(asked.times) > 1 and spent / passed < 1.5 * module.SHARE
    assert len(live.answers) == 2 and f"step {len(asked.times)} ####" in live.answers[-1][1]


def test_a_run_that_is_resumed_shows_the_steps_before(before):
    history = [
        {"step": step, "reward/mean": 0.5} | (MEASURED if step == 2 else {}) for step in (1, 2)
    ]
    live = Live.of(echo_recipe(steps=4), None, echo_task(), before, history)
    assert live.training["reward/mean"] == [(1, 0.5), (2, 0.5)]
    assert [step for step, _ in live.held_out] == [0, 2]
    assert [when for when, *_ in live.answers] == ["before training"]


MEASURED = {"eval/accuracy": 0.5, "eval/accuracy_low": 0.4, "eval/accuracy_high": 0.6}


def test_the_page_has_both_curves_and_the_first_and_the_last_answer(monkeypatch, before):
    task, asked = echo_task(), Asked(monkeypatch)
    live = Live.of(echo_recipe(steps=4), asked, task, before)
    for step in (1, 2, 3, 4):
        asked.now += 100
        metrics = {"step": step, "reward/mean": step / 10}
        live.follow(metrics | (MEASURED if step == 2 else {}))
    html = live._repr_html_()
    assert "before training" in html and "after step 4" in html and "✓</span> right" in html
    assert f"held-out accuracy 0.500 [0.400, 0.600], before training {before.accuracy}" in html
    assert "after step 3" not in html
    held = re.search(r'class="line held" points="([^"]*)"', html).group(1).split()
    assert len(held) == 2  # before training, and step 2
    assert len(re.search(r'class="line raw training" points="([^"]*)"', html)[1].split()) == 4
    assert len(re.search(r'class="band held" points="([^"]*)"', html)[1].split()) == 4  # both ends
    live.end(before)
    html = live._repr_html_()
    assert "after training" in html and "after step 4" not in html
    assert len(re.search(r'class="line held" points="([^"]*)"', html).group(1).split()) == 3


def test_what_the_policy_writes_is_text():
    hostile = Problem("<script>alert(1)</script>", "#### 1")
    live = Live(echo_recipe(), None, echo_task(), hostile)
    live._show("after step 1", "<img src=x onerror=alert(1)> #### <b>1</b>", "1")
    assert not re.search(r"<(script|img|b>)", live._repr_html_())


@pytest.mark.parametrize("algorithm", ["grpo", "sft", "dpo", "reward_model", "ppo"])
def test_a_run_that_is_watched_is_the_run_that_is_not(monkeypatch, capsys, algorithm):
    beta = {"beta": 0.1} if algorithm == "dpo" else {}
    recipe = echo_recipe(algorithm, eval_every=2, **beta)
    options = {"policy": echo_policy(), "task": echo_task()}
    if algorithm != "sft":
        options["reward"] = by_length
    alone = quiet(recipe, **options)
    monkeypatch.setattr(module, "PAUSE", 0.0)
    monkeypatch.setattr(module, "SHARE", 1e9)  # asked after every step
    monkeypatch.setattr(training.bars, "in_notebook", lambda: True)
    seen = train(recipe, **options)
    assert without_times(seen.metrics) == without_times(alone.metrics)
    if seen.policy is not None:
        assert weights(seen.policy.model).equal(weights(alone.policy.model))


def test_where_nobody_watches_nothing_is_asked(monkeypatch, capsys):
    monkeypatch.setattr(training.bars, "in_notebook", lambda: True)
    monkeypatch.setattr(Live, "of", lambda *given: pytest.fail("watched"))
    options = {"policy": echo_policy(), "task": echo_task(), "reward": by_length}
    quiet(echo_recipe(steps=1), **options)
    monkeypatch.setenv("NBGRADER_EXECUTION", "autograde")
    train(echo_recipe(steps=1), **options)


def test_a_terminal_is_told_how_the_run_does_and_what_it_writes(capsys):
    """At each evaluation on the way, and the run stays the run that says nothing."""
    recipe = echo_recipe(steps=4, eval_every=2)
    options = {"policy": echo_policy(), "task": echo_task(), "reward": by_length}
    alone = quiet(recipe, **options)
    capsys.readouterr()
    told = train(recipe, **options)
    words = capsys.readouterr().err
    for step in (2, 4):
        (line,) = re.findall(rf"after step {step} of 4: (held-out accuracy .*)", words)
        assert re.fullmatch(r"held-out accuracy (\S+ \[.*\]), before training (\S+ \[.*\])", line)
    assert len(re.findall(r"^  before training, (?:right|wrong): ", words, re.MULTILINE)) == 2
    assert re.search(r"^  after step 4, (?:right|wrong): ", words, re.MULTILINE)
    assert without_times(told.metrics) == without_times(alone.metrics)
