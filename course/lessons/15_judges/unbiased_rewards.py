"""Rewards whose expectation is the truth, from a judge of known error rates."""

from collections.abc import Iterator
from dataclasses import replace

from torch import Tensor

from rlcourse.algorithms.judges import unbiased_rewards
from rlcourse.checks.declaring import Case, CaseSampler, Sketch, tensor


def cases(draw: CaseSampler) -> Iterator[Case]:
    def case(label: str, verdicts: Tensor, false_positive: float, false_negative: float) -> Case:
        arguments = {"false_positive": false_positive, "false_negative": false_negative}
        return Case(label, {"verdicts": verdicts, **arguments})

    yield case("worked: fp 0.2, fn 0.1", tensor([1.0, 0, 1]), 0.2, 0.1)
    for label, low, high in (("few errors", 0.02, 0.1), ("many errors", 0.25, 0.45)):
        fp, fn = draw.uniform(2, low=low, high=high).tolist()
        yield case(label, draw.binary_rewards(draw.size(4, 7)), fp, fn)
    yield case("only false positives", draw.binary_rewards(5), 0.3, 0.0)
    yield case("only false negatives", draw.binary_rewards(5), 0.0, 0.4)
    yield case("more false positives than negatives", draw.binary_rewards(6), 0.6, 0.1)
    yield case("more false negatives than positives", draw.binary_rewards(6), 0.15, 0.7)
    yield case("no errors", draw.binary_rewards(6), 0.0, 0.0)
    yield case("nearly a coin", draw.binary_rewards(6), 0.5, 0.4375)
    yield case("one verdict", tensor([1.0]), 0.1, 0.25)
    yield case("float32", draw.binary_rewards(6).float(), 0.125, 0.25)
    yield replace(case("a coin", draw.binary_rewards(4), 0.5, 0.5), raises=True)
    yield replace(case("worse than a coin", draw.binary_rewards(4), 0.75, 0.5), raises=True)


def line_by_line(verdicts, false_positive, false_negative):
    left = 1 - false_positive - false_negative
    if left <= 0:
        raise ValueError("nothing is left")
    rewards = (verdicts - false_positive) / left
    return rewards


def by_two_values(verdicts, false_positive, false_negative):
    """What a verdict of 1 earns, what one of 0 earns, and between them a line."""
    if false_positive + false_negative >= 1:
        raise ValueError("no better than a coin")
    left = 1 - false_positive - false_negative
    passed, failed = (1 - false_positive) / left, -false_positive / left
    return failed + verdicts * (passed - failed)


def _any_rates(verdicts, false_positive, false_negative):
    try:
        return unbiased_rewards(verdicts, false_positive, false_negative)
    except ValueError:
        return 0 * verdicts


def _turned_round(verdicts, false_positive, false_negative):
    left = 1 - false_positive - false_negative
    if left == 0:
        raise ValueError("a coin")
    return (verdicts - false_positive) / left


sketch = Sketch(line_by_line)
alternatives = (by_two_values,)
oracle = by_two_values
