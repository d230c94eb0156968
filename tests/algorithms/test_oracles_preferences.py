"""Reward models and DPO: the optimum is the optimum, rewards come back, and TRL agrees."""

import math
from collections import defaultdict
from types import SimpleNamespace

import pytest
import torch
from algorithm_cases import right_padded_mask
from hypothesis import given, settings
from hypothesis import strategies as st

from rlcourse.algorithms import (
    bradley_terry_loss,
    dpo_loss,
    implicit_rewards,
    kl_divergence,
    last_token_index,
    optimal_policy,
    preference_pairs,
    preference_probability,
    reward_accuracy,
    sequence_logprobs,
)

F64 = torch.float64
SEEDS = range(3)


def normal(seed, *shape, scale=1.0):
    generator = torch.Generator().manual_seed(seed)
    return scale * torch.randn(*shape, generator=generator, dtype=F64)


def leashed_reward(probs, ref_probs, rewards, beta):
    """E[r] − β KL(π‖πref), exactly."""
    return probs @ rewards - beta * kl_divergence(probs.log(), ref_probs.log())


# The optimum of E[r] − β KL


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("beta", [0.1, 1.0, 10.0])
def test_gradient_of_the_leashed_reward_vanishes_at_the_optimal_policy(seed, beta):
    ref, rewards = normal(seed, 5).softmax(0), normal(seed + 10, 5)
    logits = optimal_policy(ref, rewards, beta).log().requires_grad_()
    value = leashed_reward(logits.softmax(0), ref, rewards, beta)
    (gradient,) = torch.autograd.grad(value, logits)
    torch.testing.assert_close(gradient, torch.zeros(5).to(F64), atol=1e-12, rtol=0)


@pytest.mark.parametrize("seed", SEEDS)
def test_value_at_the_optimum_is_beta_log_z(seed):
    ref, rewards, beta = normal(seed, 6).softmax(0), normal(seed + 10, 6), 0.7
    value = leashed_reward(optimal_policy(ref, rewards, beta), ref, rewards, beta)
    log_z = torch.logsumexp(ref.log() + rewards / beta, dim=0)
    torch.testing.assert_close(value, beta * log_z)


def test_long_leash_is_greedy_and_short_leash_the_reference():
    ref, rewards = torch.tensor([0.5, 0.3, 0.2], dtype=F64), torch.tensor([0, 1, 0.5], dtype=F64)
    greedy = torch.tensor([0.0, 1.0, 0.0], dtype=F64)
    torch.testing.assert_close(optimal_policy(ref, rewards, 1e-3), greedy)
    torch.testing.assert_close(optimal_policy(ref, rewards, 1e6), ref, atol=1e-6, rtol=0)


# Implicit rewards


@pytest.mark.parametrize("seed", SEEDS)
def test_implicit_rewards_of_the_optimum_are_its_rewards_up_to_a_constant(seed):
    ref, rewards, beta = normal(seed, 5).softmax(0), normal(seed + 10, 5), 0.3
    policy = optimal_policy(ref, rewards, beta)
    difference = rewards - implicit_rewards(policy.log(), ref.log(), beta)
    log_z = torch.logsumexp(ref.log() + rewards / beta, dim=0)
    torch.testing.assert_close(difference, (beta * log_z).expand(5))


@pytest.mark.parametrize("seed", SEEDS)
def test_every_policy_is_the_optimum_of_its_implicit_reward(seed):
    policy, ref, beta = normal(seed, 5).softmax(0), normal(seed + 10, 5).softmax(0), 2.0
    implied = implicit_rewards(policy.log(), ref.log(), beta)
    torch.testing.assert_close(optimal_policy(ref, implied, beta), policy)


@pytest.mark.parametrize("seed", SEEDS)
def test_expected_dpo_loss_is_stationary_at_the_optimum_of_the_annotators_reward(seed):
    """Labels drawn from Bradley and Terry's model: DPO's optimum is π*, without a reward model."""
    ref, rewards, beta = normal(seed, 4).softmax(0), normal(seed + 10, 4), 0.5
    logits = optimal_policy(ref, rewards, beta).log().requires_grad_()
    logprobs, total = logits.log_softmax(0), 0
    for a in range(4):
        for b in range(4):
            pair = [x[None] for x in (logprobs[a], logprobs[b], ref[a].log(), ref[b].log())]
            weight = preference_probability(rewards[a], rewards[b])
            total = total + weight * dpo_loss(*pair, beta=beta)[0]
    (gradient,) = torch.autograd.grad(total, logits)
    torch.testing.assert_close(gradient, torch.zeros(4).to(F64), atol=1e-12, rtol=0)


# Bradley and Terry


@given(st.floats(-50, 50), st.floats(-50, 50), st.floats(-1000, 1000))
@settings(max_examples=50, deadline=None)
def test_preferences_sum_to_one_and_ignore_a_common_shift(a, b, shift):
    a, b = torch.tensor(a, dtype=F64), torch.tensor(b, dtype=F64)
    probability = preference_probability(a, b)
    assert (probability + preference_probability(b, a)).item() == pytest.approx(1.0)
    shifted = preference_probability(a + shift, b + shift).item()
    assert shifted == pytest.approx(probability.item(), abs=1e-9)


@pytest.mark.parametrize("dtype", [torch.float32, F64])
@pytest.mark.parametrize("gap", [-2000.0, -100.0, 100.0, 2000.0])
def test_bradley_terry_loss_is_finite_and_pushes_wrong_pairs_with_weight_one(gap, dtype):
    chosen = torch.tensor([gap], dtype=dtype, requires_grad=True)
    loss = bradley_terry_loss(chosen, torch.zeros(1, dtype=dtype))
    (gradient,) = torch.autograd.grad(loss, chosen)
    assert loss.item() == pytest.approx(max(-gap, 0.0), abs=1e-6)
    assert gradient.item() == pytest.approx(-1.0 if gap < 0 else 0.0, abs=1e-6)


def test_expected_loss_is_stationary_at_the_annotators_rewards_and_at_any_shift_of_them():
    rewards = torch.tensor([0.3, -1.0, 1.2], dtype=F64)
    wins = preference_probability(rewards[:, None], rewards).flatten()
    fitted = (rewards + 5).requires_grad_()
    left, right = fitted.repeat_interleave(3), fitted.repeat(3)
    per_pair = [
        p * bradley_terry_loss(a[None], b[None]) for p, a, b in zip(wins, left, right, strict=True)
    ]
    (gradient,) = torch.autograd.grad(sum(per_pair), fitted)
    torch.testing.assert_close(gradient, torch.zeros(3, dtype=F64), atol=1e-12, rtol=0)


# Rows, tokens and pairs


@given(st.lists(st.lists(st.booleans(), min_size=5, max_size=5), min_size=1, max_size=6))
@settings(max_examples=50, deadline=None)
def test_last_token_index_is_the_last_true_position_or_zero(rows):
    expected = [max((t for t, real in enumerate(row) if real), default=0) for row in rows]
    assert last_token_index(torch.tensor(rows)).tolist() == expected


@pytest.mark.parametrize("filling", [0.0, 7.0, -math.inf, math.nan])
def test_sequence_logprobs_do_not_see_padding(filling):
    mask = right_padded_mask([3, 0, 1], 3)
    logprobs = torch.full((3, 3), -2.0).masked_fill(~mask, filling)
    assert sequence_logprobs(logprobs, mask).tolist() == [-6.0, 0.0, -2.0]


@given(
    st.integers(1, 6),
    st.lists(st.sampled_from([0.0, 0.5, 1.0, -2.0]), min_size=6, max_size=6),
)
@settings(max_examples=100, deadline=None)
def test_pairs_are_ordered_within_a_group_and_use_no_row_twice(group_size, values):
    rewards = torch.tensor(values[: len(values) // group_size * group_size])
    pairs = preference_pairs(rewards, group_size)
    assert pairs.shape == (len(pairs), 2) and pairs.dtype == torch.long
    assert (rewards[pairs[:, 0]] > rewards[pairs[:, 1]]).all()
    assert (pairs[:, 0] // group_size == pairs[:, 1] // group_size).all()
    assert pairs.unique().numel() == pairs.numel()


@pytest.mark.parametrize("right", range(9))
def test_binary_rewards_give_as_many_pairs_as_the_rarer_outcome(right):
    rewards = torch.tensor([1.0] * right + [0.0] * (8 - right))
    assert len(preference_pairs(rewards, 8)) == min(right, 8 - right)


# The loss


def random_pairs(seed, n=5):
    return [-normal(seed + i, n, scale=8.0).abs() for i in range(4)]


@pytest.mark.parametrize("seed", SEEDS)
def test_dpo_gradient_is_beta_times_the_probability_of_the_wrong_order(seed):
    beta, pairs = 0.3, random_pairs(seed)
    for tensor in pairs[:2]:
        tensor.requires_grad_()
    loss, chosen, rejected = dpo_loss(*pairs, beta=beta)
    gradients = torch.autograd.grad(loss, pairs[:2])
    weight = beta * torch.sigmoid(rejected - chosen) / len(chosen)
    torch.testing.assert_close(gradients, (-weight, weight))


@pytest.mark.parametrize("seed", SEEDS)
def test_label_smoothing_mixes_the_losses_of_both_orders(seed):
    pairs = random_pairs(seed)
    flipped = [pairs[1], pairs[0], pairs[3], pairs[2]]
    mixed = 0.8 * dpo_loss(*pairs)[0] + 0.2 * dpo_loss(*flipped)[0]
    torch.testing.assert_close(dpo_loss(*pairs, label_smoothing=0.2)[0], mixed)


# TRL


def trl_dpo(logprobs, ref_logprobs, mask, beta):
    """TRL's loss, gradient by token log-probs and metrics, rows [chosen; rejected]."""
    trl = pytest.importorskip("trl", reason="parity is measured against TRL")
    if trl.__version__ != "1.16.0":
        pytest.skip(f"parity reads private methods of TRL 1.16.0, this is {trl.__version__}")
    logprobs = logprobs.clone().requires_grad_()
    zeros = torch.zeros_like(logprobs)
    forward = SimpleNamespace(
        log_probs=logprobs * mask, entropy=zeros, mean_logits=zeros, is_top1=mask
    )
    same = lambda x, **_: x  # noqa: E731  one process: gathering changes nothing
    trainer = object.__new__(trl.DPOTrainer)
    trainer.__dict__.update(
        accelerator=SimpleNamespace(device="cpu", gather=same, gather_for_metrics=same),
        model=SimpleNamespace(training=True), aux_loss_enabled=False, ld_alpha=None,
        precompute_ref_logps=True, f_divergence_type="reverse_kl", loss_types=["sigmoid"],
        loss_weights=[1.0], beta=beta, label_smoothing=0.0, use_weighting=False,
        _metrics=defaultdict(lambda: defaultdict(list)), _total_train_tokens=0, _tp_size=1,
    )  # fmt: skip
    prompt = torch.zeros(len(mask), 1, dtype=torch.long)
    completion_mask = torch.cat([prompt, mask.long()], dim=1)
    ref_chosen, ref_rejected = (ref_logprobs * mask).sum(1).chunk(2)
    inputs = {
        "input_ids": torch.zeros_like(completion_mask),
        "attention_mask": torch.ones_like(completion_mask),
        "completion_mask": completion_mask,
        "ref_chosen_logps": ref_chosen,
        "ref_rejected_logps": ref_rejected,
    }
    loss = trl.DPOTrainer._compute_loss(trainer, lambda **_: forward, inputs, False)
    (gradient,) = torch.autograd.grad(loss, logprobs)
    return loss.detach(), gradient, trainer._metrics["train"]


@pytest.mark.parametrize("beta", [0.1, 0.5])
@pytest.mark.parametrize("seed", SEEDS)
def test_dpo_is_trls_sigmoid_loss_in_value_gradient_and_metrics(seed, beta):
    mask = right_padded_mask([6, 3, 1, 5, 2, 6], 6)
    logprobs, ref_logprobs = -normal(seed, 6, 6).abs(), -normal(seed + 10, 6, 6).abs()
    source = logprobs.clone().requires_grad_()
    chosen, rejected = sequence_logprobs(source, mask).chunk(2)
    ref_chosen, ref_rejected = sequence_logprobs(ref_logprobs, mask).chunk(2)
    loss, chosen_rewards, rejected_rewards = dpo_loss(
        chosen, rejected, ref_chosen, ref_rejected, beta
    )
    (gradient,) = torch.autograd.grad(loss, source)
    theirs, their_gradient, metrics = trl_dpo(logprobs, ref_logprobs, mask, beta)
    torch.testing.assert_close((loss.detach(), gradient), (theirs, their_gradient))
    assert chosen_rewards.mean().item() == pytest.approx(metrics["rewards/chosen"][0])
    assert rejected_rewards.mean().item() == pytest.approx(metrics["rewards/rejected"][0])
    accuracy = reward_accuracy(chosen_rewards, rejected_rewards).item()
    assert accuracy == pytest.approx(metrics["rewards/accuracies"][0])
