"""Lesson 07: what its text says about numbers, and the direction of its exact contrasts."""

import math

import pytest
import torch

from rlcourse import algorithms as A
from rlcourse.policy import ToyPolicy


@pytest.mark.parametrize("how, average", [("sequence", 1.5), ("token", 1.8), ("constant", 9 / 16)])
def test_the_example_tells_the_three_averages_apart(how, average):
    mask = torch.arange(4) < torch.tensor([[1], [4]])
    per_token = torch.tensor([[1.0], [2.0]]).expand(2, 4)
    assert A.aggregate(per_token, mask, how, max_tokens=8).item() == pytest.approx(average)


def train_exactly(how, steps=200):
    """Expected lengths of right and wrong answers, first and last, under exact updates."""
    toy = ToyPolicy(vocab_size=3, length=4, seed=1, eos_id=0)
    optimizer = torch.optim.SGD(toy.parameters(), lr=1.0)
    everything = toy.trajectories()
    first, lengths = everything.tokens[:, 0], everything.mask.sum(dim=1).double()
    right, path = (first == 1).double(), []
    for _ in range(steps):
        p = toy.probabilities().detach()
        path.append([((p * (first == a)) @ lengths / p[first == a].sum()).item() for a in (1, 2)])
        per_token = (len(p) * p * (right - p @ right))[:, None] * toy.logprobs(everything)
        optimizer.zero_grad()
        (-A.aggregate(per_token, everything.mask, how, toy.length)).backward()
        optimizer.step()
    return path[0], path[-1]


def test_a_mean_per_completion_shortens_right_answers_and_lengthens_wrong_ones():
    (right, wrong), (right_after, wrong_after) = train_exactly("sequence")
    # Exact for any toy; by how much differs: in six of them by .02 to .36 and by .02 to .13.
    assert right_after < right - 0.01 and wrong_after > wrong + 0.01


def test_a_constant_leaves_lengths_where_they_were():
    before, after = train_exactly("constant")
    assert after == pytest.approx(before, abs=1e-9)


def weight(advantages, p, G):
    """Factor of ∇p in the expected gradient of a question, by summation over groups."""
    total = 0.0
    for k in range(G + 1):
        chance = math.comb(G, k) * p**k * (1 - p) ** (G - k)
        a = advantages(torch.tensor([1.0] * k + [0.0] * (G - k), dtype=torch.float64), G)
        total += chance * (a[:k].sum() / p - a[k:].sum() / (1 - p)).item() / G
    return total


@pytest.mark.parametrize("G, most", [(8, 1.51), (64, 4.01)])
def test_the_standard_deviation_over_weights_by_a_factor_that_the_group_size_bounds(G, most):
    middle = weight(A.group_normalized_advantages, 0.5, G) / weight(A.group_mean_advantages, 0.5, G)
    factors = [
        weight(A.group_normalized_advantages, p, G) / weight(A.group_mean_advantages, p, G) / middle
        for p in (1e-4, 0.01, 0.1, 0.3)
    ]
    assert factors == sorted(factors, reverse=True)
    assert most / 1.1 < factors[0] < most * 1.05


@pytest.mark.parametrize("p", [0.05, 0.3, 0.5, 0.9])
def test_the_group_mean_keeps_the_objective(p):
    assert weight(A.group_mean_advantages, p, 8) == pytest.approx(7 / 8)


@pytest.mark.parametrize("p", [0.05, 0.3, 0.5, 0.9])
def test_signs_weigh_a_question_by_a_factor_between_one_and_two(p):
    expected = 2 - p**7 - (1 - p) ** 7
    assert weight(A.sign_advantages, p, 8) == pytest.approx(expected)
    assert 1 <= expected <= 2


def test_an_unlikely_token_may_gain_two_or_nearly_three_thousandths():
    for high, limit in ((0.2, 0.012), (0.28, 0.0128)):
        old = torch.tensor([[0.01]], dtype=torch.float64).log()
        for p, flows in ((limit - 1e-6, True), (limit + 1e-6, False)):
            new = torch.tensor([[p]], dtype=torch.float64).log().requires_grad_()
            loss = A.dapo_loss(new, old, torch.ones(1), torch.ones(1, 1), clip_high=high)
            (gradient,) = torch.autograd.grad(loss, new)
            assert bool(gradient.any()) == flows


def entropy_after(clip_high, seed, steps=60, updates=4):
    """Section 4's question with 16 right answers of 32; its entropy in nats at the end."""
    generator = torch.Generator().manual_seed(seed)
    logits = torch.linspace(0, -4, 16).repeat(2).requires_grad_()
    optimizer = torch.optim.SGD([logits], lr=2.0)
    for _ in range(steps):
        old = logits.detach().log_softmax(dim=0)
        answers = torch.multinomial(old.exp(), 64, replacement=True, generator=generator)
        advantages = A.group_normalized_advantages((answers < 16).float(), 64)
        for _ in range(updates):
            new = logits.log_softmax(dim=0)[answers, None]
            ones = torch.ones(64, 1)
            loss = A.dapo_loss(new, old[answers, None], advantages, ones, 0.2, clip_high)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
    return -(logits.softmax(0) @ logits.log_softmax(0)).item()


def test_with_many_right_answers_a_wide_band_ends_at_less_entropy_than_a_narrow_one():
    # Eight seeds: 0.05 to 0.28 nats in the wide band, 0.82 to 1.22 in the narrow one.
    wide, narrow = ([entropy_after(edge, seed) for seed in (0, 1)] for edge in (1.0, 0.05))
    assert max(wide) < min(narrow)


def test_the_first_update_raises_right_answers_in_proportion_to_how_often_they_were_drawn():
    logits = torch.linspace(0, -2, 5).double().requires_grad_()
    answers = torch.tensor([0, 0, 0, 1, 1, 2, 3, 4])  # 0 to 2 are right
    advantages = A.group_normalized_advantages((answers < 3).double(), 8)
    logprobs = logits.log_softmax(dim=0)[answers, None]
    loss = A.dapo_loss(logprobs, logprobs.detach(), advantages, torch.ones(8, 1))
    (gradient,) = torch.autograd.grad(loss, logits)
    rise = -gradient
    assert rise[0].item() == pytest.approx(3 * rise[2].item())
    assert rise[1].item() == pytest.approx(2 * rise[2].item())
