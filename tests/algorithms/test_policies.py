"""Sampling, scoring, masks, entropy and returns of lesson 01."""

import math

import pytest
import torch
from algorithm_cases import right_padded_mask

from rlcourse.algorithms import (
    completion_mask,
    masked_mean,
    returns_to_go,
    sample_tokens,
    token_entropy,
    token_logprobs,
)

SAMPLES = 20_000


def rng(seed=0):
    return torch.Generator().manual_seed(seed)


def frequencies(probs, **options):
    """How often each token was drawn in SAMPLES draws."""
    logits = torch.tensor(probs, dtype=torch.float64).log().expand(SAMPLES, -1)
    tokens = sample_tokens(logits, generator=rng(), **options)
    assert tokens.shape == (SAMPLES,) and tokens.dtype == torch.long
    return torch.bincount(tokens, minlength=len(probs)).double() / SAMPLES


def assert_drawn_from(measured, expected):
    """Every frequency within four standard errors; what has probability 0 never occurs."""
    expected = torch.tensor(expected, dtype=torch.float64)
    standard_error = (expected * (1 - expected) / SAMPLES).sqrt()
    assert ((measured - expected).abs() <= 4 * standard_error + 1e-12).all(), (measured, expected)


# sample_tokens


def test_samples_follow_the_softmax():
    assert_drawn_from(frequencies((0.5, 0.3, 0.15, 0.05)), (0.5, 0.3, 0.15, 0.05))


@pytest.mark.parametrize("temperature", [0.5, 2.0])
def test_temperature_divides_the_logits(temperature):
    powers = [p ** (1 / temperature) for p in (0.5, 0.3, 0.2)]
    expected = [p / sum(powers) for p in powers]
    assert_drawn_from(frequencies((0.5, 0.3, 0.2), temperature=temperature), expected)


def test_temperature_zero_is_greedy():
    logits = torch.randn(20, 9, generator=rng(1))
    assert torch.equal(sample_tokens(logits, temperature=0), logits.argmax(1))
    assert torch.equal(sample_tokens(logits, temperature=0.0, top_k=3, top_p=0.5), logits.argmax(1))


@pytest.mark.parametrize(
    "k, expected", [(1, (0, 1, 0)), (2, (0.375, 0.625, 0)), (9, (0.3, 0.5, 0.2))]
)
def test_top_k_keeps_the_likeliest_and_renormalizes(k, expected):
    assert_drawn_from(frequencies((0.3, 0.5, 0.2), top_k=k), expected)


@pytest.mark.parametrize(
    "p, expected",
    [
        (0.01, (0, 1, 0, 0)),
        (0.49, (0, 1, 0, 0)),
        (0.6, (0.375, 0.625, 0, 0)),  # the token that crosses the threshold stays
        (0.79, (0.375, 0.625, 0, 0)),
        (0.9, (0.3 / 0.95, 0.5 / 0.95, 0.15 / 0.95, 0)),
        (1.0, (0.3, 0.5, 0.15, 0.05)),
    ],
)
def test_top_p_keeps_the_smallest_set_that_reaches_p(p, expected):
    assert_drawn_from(frequencies((0.3, 0.5, 0.15, 0.05), top_p=p), expected)


def test_top_p_sees_the_tempered_distribution():
    # at temperature 2 the probabilities are 0.44, 0.34, 0.22: the likeliest no longer reaches 0.5
    tempered = [math.sqrt(p) for p in (0.5, 0.3, 0.125)]
    assert tempered[0] / sum(tempered) < 0.5 < 0.5 / 0.925
    measured = frequencies((0.5, 0.3, 0.125), temperature=2.0, top_p=0.5)
    kept = tempered[0] + tempered[1]
    assert_drawn_from(measured, (tempered[0] / kept, tempered[1] / kept, 0))


# token_logprobs


def test_logits_at_t_score_the_token_at_t_plus_one():
    logits = torch.randn(3, 5, 7, generator=rng(), dtype=torch.float64)
    tokens = torch.randint(7, (3, 5), generator=rng())
    scores = token_logprobs(logits, tokens, temperature=0.7)
    assert scores.shape == (3, 4)
    for n in range(3):
        for t in range(4):
            row = [value / 0.7 for value in logits[n, t].tolist()]
            expected = row[tokens[n, t + 1]] - math.log(sum(map(math.exp, row)))
            assert scores[n, t].item() == pytest.approx(expected)


def test_very_unlikely_token_has_a_finite_score():
    logits = torch.tensor([[[1000.0, -1000.0], [0.0, 0.0]]], requires_grad=True)
    score = token_logprobs(logits, torch.tensor([[0, 1]]))
    assert score.item() == -2000
    score.sum().backward()
    assert logits.grad[0].tolist() == [[-1, 1], [0, 0]]


# completion_mask


@pytest.mark.parametrize(
    "tokens, mask",
    [
        ([5, 6, 2, 0, 0], [1, 1, 1, 0, 0]),
        ([5, 2, 6, 2, 7], [1, 1, 0, 0, 0]),  # the first EOS counts, not the last
        ([5, 6, 7, 8, 9], [1, 1, 1, 1, 1]),  # cut off: every token is real
        ([2, 2, 2, 2, 2], [1, 0, 0, 0, 0]),  # padding is EOS as well
        ([5, 6, 7, 8, 2], [1, 1, 1, 1, 1]),
        ([5, 0, 6, 2, 0], [1, 1, 1, 1, 0]),  # the padding token, sampled as a token
    ],
)
def test_mask_ends_with_the_first_eos(tokens, mask):
    result = completion_mask(torch.tensor([tokens, [9] * 5]), eos_id=2)
    assert result.dtype == torch.bool
    assert result.int().tolist() == [mask, [1] * 5]


# token_entropy


def test_entropy_is_in_nats():
    probs = torch.tensor([[[0.5, 0.3, 0.2], [1 / 3, 1 / 3, 1 / 3]]], dtype=torch.float64)
    expected = [-sum(p * math.log(p) for p in row) for row in probs[0].tolist()]
    assert token_entropy(probs.log()).tolist() == [pytest.approx(expected)]


def test_entropy_of_extreme_logits_is_finite():
    logits = torch.tensor([[[1000.0, -1000.0], [1000.0, 1000.0], [-1000.0, -1000.0]]])
    logits.requires_grad_()
    entropy = token_entropy(logits)
    torch.testing.assert_close(entropy, torch.tensor([[0.0, math.log(2), math.log(2)]]))
    entropy.sum().backward()
    assert logits.grad.isfinite().all()


# masked_mean, sft_loss


def test_masked_mean_counts_real_elements_only():
    x = torch.tensor([[1.0, 2.0, 9.0], [3.0, 9.0, 9.0], [9.0, 9.0, 9.0]])
    mask = right_padded_mask([2, 1, 0], 3)
    assert masked_mean(x, mask).item() == 2.0
    assert masked_mean(x, mask, dim=1).tolist() == [1.5, 3.0, 0.0]
    assert masked_mean(x, mask, dim=0).tolist() == [2.0, 2.0, 0.0]


# returns_to_go


@pytest.mark.parametrize("gamma", [1.0, 0.9, 0.0])
def test_return_sums_the_rewards_still_to_come(gamma):
    rewards = torch.randn(4, 6, generator=rng(), dtype=torch.float64)
    lengths = [6, 4, 1, 0]
    returns = returns_to_go(rewards, right_padded_mask(lengths, 6), gamma)
    for n, length in enumerate(lengths):
        for t in range(6):
            expected = sum(gamma ** (k - t) * rewards[n, k].item() for k in range(t, length))
            assert returns[n, t].item() == pytest.approx(expected)
