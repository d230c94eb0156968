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


@pytest.mark.parametrize("n, c, k", [(4, 5, 1), (4, -1, 1), (4, 2, 5), (4, 2, 0)])
def test_impossible_counts_are_refused(n, c, k):
    with pytest.raises(ValueError):
        pass_at_k(n, c, k)


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


def test_surer_interval_is_wider_and_more_data_make_it_narrower():
    def width(repeats, level=0.95):
        low, high = bootstrap_interval(torch.tensor([1.0, 0, 0, 1, 1]).repeat(repeats), level=level)
        return high - low

    assert width(10, 0.8) < width(10, 0.95) < width(10, 0.99)
    assert width(90) == pytest.approx(width(10) / 3, rel=0.15)


def test_no_variation_gives_a_point():
    assert bootstrap_interval(torch.ones(7)) == (1.0, 1.0)
    assert bootstrap_interval(torch.zeros(7, dtype=torch.bool)) == (0.0, 0.0)


def test_interval_is_reproducible():
    correct = torch.tensor([1.0, 0, 0, 1, 1, 0, 1])
    state = torch.get_rng_state()
    assert bootstrap_interval(correct) == bootstrap_interval(correct)
    assert torch.equal(torch.get_rng_state(), state)


def test_interval_of_nothing_is_refused():
    with pytest.raises(ValueError):
        bootstrap_interval(torch.zeros(0))
