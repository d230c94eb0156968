"""Two and three mistakes at once: named rightly or not at all, and in bounded work."""

import pytest
import torch

from rlcourse.checks.asking.calling import call_all, describe
from rlcourse.checks.judging.exam import Exam
from rlcourse.checks.judging.several import edited, together
from rlcourse.checks.judging.sketch import Sketch
from rlcourse.checks.proving.trying import Court, several
from rlcourse.exercises import all as every
from rlcourse.exercises import get

EDITED = [exercise.name for exercise in every() if edited(exercise)]


def judged(name, seed=0, hidden=False, *, of):
    """The result for a function that makes these mistakes, and the exam that gave it."""
    exercise = get(name)
    parts = tuple(mistake for mistake in exercise.mistakes if mistake.name in of)
    assert len(parts) == len(of)
    fn, exam = together(parts).implementation, Exam(exercise, seed, hidden)
    return exam.judge(describe(fn), call_all(fn, exam.cases)), exam


@pytest.mark.weekly
def test_a_sample_of_pairs_is_named_rightly_or_not_at_all():
    found = []
    for name in EDITED:
        court = Court(get(name), 7)
        found += [court.verdict(fn) for _, fn in several(get(name), 2, 7)]
    assert "false name" not in found and "passed" not in found
    # Of all pairs of a sample more than 95 % are named.
    assert found.count("unnamed") <= 0.15 * len(found)


def test_what_is_wrong_is_listed_with_advice():
    result, _ = judged(
        "grpo_loss", of=("the KL the other way around", "a mean in which padding takes part")
    )
    first, *rest = result.sentences
    assert first == "Your numbers are what two mistakes together give."
    assert [sentence.partition(": ")[0] for sentence in rest] == ["Wrong", "Wrong"]
    assert "The samples come from πθ" in result.message
    assert result.mistake == "a mean in which padding takes part + the KL the other way around"
    assert result._repr_html_().count("✗") >= 2


@pytest.mark.slow
def test_a_function_that_nothing_explains_gets_no_name_in_bounded_work():
    def grpo_loss(logprobs, old_logprobs, ref_logprobs, advantages, mask, clip=0.2, beta=0.04):
        return (logprobs * 0.3 + old_logprobs * 0.1).square().mean()

    for hidden in (False, True):
        exam = Exam(get("grpo_loss"), 3, hidden)
        result = exam.judge(describe(grpo_loss), call_all(grpo_loss, exam.cases))
        assert not result.passed and result.mistake is None
        assert exam.of_several.cache_info().currsize == 1  # all of them on one case


@pytest.mark.parametrize("name", EDITED)
def test_edits_use_names_that_exist_and_decisions_are_several(name):
    exam = Exam(get(name), 0)
    for mistakes in edited(get(name)).values():
        assert len({mistake.implementation.decision for mistake in mistakes}) >= 3
        for mistake in mistakes:
            error = exam.outcome_of(mistake, 0).error
            assert error is None or error.type != "NameError", (mistake.name, error)


def scaled_sum(x, mask, scale=2.0):
    kept = x * mask
    total = kept.sum()
    for _ in range(2):
        total = total * scale
    return total


def test_edits_are_made_together_where_decision_and_place_differ():
    sketch = Sketch(scaled_sum)
    mean = sketch.edit("the sum", "kept.sum()", "kept.mean()")
    largest = sketch.edit("the sum", "kept.sum()", "kept.max()")
    unmasked = sketch.edit("the mask", "x * mask", "x")
    doubled = sketch.edit("the mask, too", "x * mask", "2 * x * mask")
    once = sketch.edit("the loop", "range(2)", "range(1)", "total * scale", "total + scale")
    default = sketch.edit("the default", "scale=2.0", "scale=3.0")
    assert not mean.goes_with(largest) and not unmasked.goes_with(doubled)
    x, mask = torch.tensor([1.0, 2.0, 3.0]), torch.tensor([1.0, 1.0, 0.0])
    assert sketch.compiled([mean, once, default])(x, mask) == 1.0 + 3.0


def test_an_edit_of_text_that_is_not_there_once_is_refused():
    sketch = Sketch(scaled_sum)
    for text in ("median()", "total"):
        with pytest.raises(ValueError):
            sketch.edit("the sum", text, "x")
