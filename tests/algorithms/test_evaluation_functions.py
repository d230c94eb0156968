"""pass@k, majority vote and bootstrap interval against enumeration."""

from itertools import combinations

import pytest
import torch

from rlcourse.algorithms import bootstrap_interval, majority_vote, pass_at_k


@pytest.mark.parametrize("n", [1, 2, 5, 7])
def test_pass_at_k_is_the_share_of_subsets_with_a_right_completion(n):
    for c in range(n + 1):
        for k in range(1, n + 1):
            subsets = list(combinations([True] * c + [False] * (n - c), k))
            share = sum(any(s) for s in subsets) / len(subsets)
            assert pass_at_k(n, c, k) == pytest.approx(share)


def test_pass_at_k_of_thousands_of_samples():
    assert pass_at_k(10_000, 1, 100) == pytest.approx(0.01)
    assert pass_at_k(10_000, 0, 100) == 0.0
    assert pass_at_k(10_000, 10_000, 1) == 1.0


@pytest.mark.parametrize(
    "answers, winner",
    [
        (["14", "15", "14"], "14"),
        (["15", "14", "14", "15", "15"], "15"),
        ([None, None, None, "7"], "7"),  # no answer is no vote
        (["3", "4"], "3"),
        (["4", "3"], "4"),
        ([None, None], None),
        ([], None),
    ],
)
def test_majority_vote(answers, winner):
    assert majority_vote(answers) == winner


def test_interval_holds_the_mean_and_agrees_with_the_normal_approximation():
    correct = (torch.arange(400) % 10 < 3).double()
    low, high = bootstrap_interval(correct)
    half_width = 1.96 * (0.3 * 0.7 / 400) ** 0.5
    assert low == pytest.approx(0.3 - half_width, abs=0.006)
    assert high == pytest.approx(0.3 + half_width, abs=0.006)
