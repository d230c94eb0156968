"""The one place that makes intervals: exact coverage, and who else may compute one."""

import re
from math import comb

import pytest
import torch
from test_architecture import PACKAGE

from rlcourse.algorithms import bootstrap_interval, error_rates
from rlcourse.evaluation import Interval
from rlcourse.intervals import interval_of, interval_of_runs


def coverage(p, n):
    """How often the interval of n problems holds a rate of p, over every number of right ones."""
    held = 0.0
    for right in range(n + 1):
        low, high = interval_of([1.0] * right + [0.0] * (n - right))
        held += (low <= p <= high) * comb(n, right) * p**right * (1 - p) ** (n - right)
    return held


@pytest.mark.parametrize(
    "p, n, least", [(1 / 30, 30, 0.92), (0.97, 64, 0.92), (0.02, 200, 0.93), (0.5, 30, 0.94)]
)
def test_it_holds_the_truth_about_as_often_as_it_says_near_the_ends_too(p, n, least):
    """The bootstrap has .64 in the first row, which is why a share near an end has another one."""
    assert coverage(p, n) >= least


def test_near_an_end_it_is_the_interval_of_lesson_15_and_elsewhere_that_of_lesson_11():

    few, many = torch.tensor([1.0] * 3 + [0.0] * 17), torch.tensor([1.0] * 12 + [0.0] * 20)
    wilson = error_rates(torch.cat([few, torch.ones(1)]), torch.cat([0 * few, torch.ones(1)]))[0]
    assert interval_of(few.tolist()) == pytest.approx(wilson[1:].tolist())
    assert interval_of(many.tolist()) == bootstrap_interval(many)


def test_problems_are_the_unit_and_differences_are_no_shares():
    assert interval_of([1.0] * 200)[0] == pytest.approx(0.981, abs=1e-3)
    assert Interval.of([1.0] * 5 + [0.0] * 195).low > 0
    assert Interval.of([1.0] + [0.0] * 199, share=False).low == 0  # one win is no proof


@pytest.mark.parametrize("n", (2, 3, 6, 10, 12, 25))
def test_of_runs_it_holds_the_mean_in_95_of_100(n):
    draws = torch.randn(4000, n, generator=torch.Generator().manual_seed(n)).tolist()
    held = sum(low <= 0 <= high for low, high in map(interval_of_runs, draws)) / len(draws)
    assert held == pytest.approx(0.95, abs=0.015)


def test_nothing_else_makes_an_interval():
    """1.96, Student's t and the bootstrap's name, apart from the functions that students write."""
    made = re.compile(r"1\.96|\b4\.30\b|\bbootstrap_interval\b")
    modules = {str(path.relative_to(PACKAGE)): path for path in PACKAGE.rglob("*.py")}
    found = {name for name, path in modules.items() if made.search(path.read_text("utf-8"))}
    own = {"intervals.py", "algorithms/gsm8k.py", "algorithms/judges.py"}
    assert found == own
