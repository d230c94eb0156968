"""What holds for every batch: padding is invisible, arguments are left alone, symmetries hold."""

from types import SimpleNamespace

import pytest
import torch
from algorithm_cases import LOSSES, call_loss, loss_and_gradient, make_batch
from hypothesis import given, settings
from hypothesis import strategies as st

from rlcourse.algorithms import (
    gae,
    group_mean_advantages,
    group_normalized_advantages,
    importance_weights,
    kl_divergence,
    kl_shaped_rewards,
    leave_one_out_advantages,
    masked_mean,
    ppo_clip_loss,
    returns_to_go,
    whiten,
)

few = settings(max_examples=15, deadline=None, derandomize=True)
every_loss = pytest.mark.parametrize("name", LOSSES)

# tensor-valued functions of a batch
TENSORS = {
    "token weights": lambda b: importance_weights(b.logprobs, b.old_logprobs, b.mask),
    "sequence weights": lambda b: importance_weights(
        b.logprobs, b.old_logprobs, b.mask, level="sequence"
    ),
    "returns_to_go": lambda b: returns_to_go(b.returns, b.mask, 0.9),
    "gae advantages": lambda b: gae(b.returns, b.values, b.mask, 0.9, 0.8)[0],
    "gae returns": lambda b: gae(b.returns, b.values, b.mask, 0.9, 0.8)[1],
    "kl_shaped_rewards": lambda b: kl_shaped_rewards(
        b.rewards, b.logprobs, b.ref_logprobs, b.mask, 0.3
    ),
    "whiten": lambda b: whiten(b.values, b.mask),
    "row means": lambda b: masked_mean(b.values, b.mask, dim=1),
    "column means": lambda b: masked_mean(b.values, b.mask, dim=0),
    "clip fraction": lambda b: ppo_clip_loss(b.logprobs, b.old_logprobs, b.advantages, b.mask)[1],
}
every_tensor = pytest.mark.parametrize("name", TENSORS)


@st.composite
def batches(draw):
    """Any seed, shape and lengths; empty rows and empty batches included."""
    n, t = draw(st.integers(1, 5)), draw(st.integers(1, 5))
    lengths = draw(st.lists(st.integers(0, t), min_size=n, max_size=n))
    return make_batch(draw(st.integers(0, 2**16)), n, t, lengths=lengths)


def changed(batch, **changes):
    return SimpleNamespace(**(vars(batch) | changes))


def with_garbage_on_padding(batch, garbage):
    per_token = {
        name: value.masked_fill(~batch.mask, garbage)
        for name, value in vars(batch).items()
        if name != "mask" and value.shape == batch.mask.shape
    }
    return changed(batch, **per_token)


# masks


@every_loss
@given(batch=batches())
@few
def test_large_garbage_on_padding_changes_neither_value_nor_gradient(name, batch):
    clean = loss_and_gradient(name, batch)
    for garbage in (1e4, -1e4, 1e30, -1e30):
        loss, gradient = loss_and_gradient(name, with_garbage_on_padding(batch, garbage))
        torch.testing.assert_close(loss, clean[0], rtol=1e-12, atol=1e-14)
        torch.testing.assert_close(gradient, clean[1], rtol=1e-12, atol=1e-14)
        assert (gradient[~batch.mask] == 0).all()


@pytest.mark.parametrize("garbage", [float("inf"), float("-inf"), float("nan")])
@every_loss
def test_padding_may_hold_infinities_and_nan(name, garbage):
    batch = make_batch(0)
    clean = loss_and_gradient(name, batch)
    dirty = loss_and_gradient(name, with_garbage_on_padding(batch, garbage))
    torch.testing.assert_close(dirty, clean, rtol=1e-12, atol=1e-14)


@every_tensor
@given(batch=batches())
@few
def test_garbage_on_padding_does_not_leak(name, batch):
    clean = TENSORS[name](batch)
    assert clean.isfinite().all()
    if clean.shape == batch.mask.shape:
        assert (clean[~batch.mask] == 0).all()
    for garbage in (1e30, -1e4, float("inf"), float("nan")):
        dirty = TENSORS[name](with_garbage_on_padding(batch, garbage))
        torch.testing.assert_close(dirty, clean, rtol=1e-12, atol=1e-14)


@pytest.mark.parametrize("name, counts", [
    ("reinforce_loss", True), ("off_policy_loss", True), ("grpo_loss", True),
    ("sft_loss", False), ("ppo_clip_loss", False), ("value_loss", False),
])  # fmt: skip
def test_empty_completion_is_a_row_of_zero_in_means_over_rows(name, counts):
    """Losses that average over completions count it; those that average over tokens cannot."""
    batch = make_batch(2, rows=5, width=4, lengths=[4, 3, 0, 1, 2])
    keep = torch.tensor([0, 1, 3, 4])
    without = SimpleNamespace(**{k: v[keep] for k, v in vars(batch).items()})
    factor = 4 / 5 if counts else 1.0
    torch.testing.assert_close(call_loss(name, batch), factor * call_loss(name, without))


# purity


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("name", [*LOSSES, *TENSORS])
def test_dtype_is_kept_and_precision_is_that_of_the_dtype(name, dtype):
    exact, batch = make_batch(5), make_batch(5, dtype=dtype)
    fn = TENSORS.get(name, lambda b: call_loss(name, b))
    result = fn(batch)
    assert result.dtype == dtype
    torch.testing.assert_close(result.double(), fn(exact), rtol=1e-4, atol=1e-5)


# extremes


@pytest.mark.parametrize("name", [n for n in LOSSES if n != "value_loss"])
@pytest.mark.parametrize("old, new", [(-1.0, -1e4), (-1e4, -1e4), (0.0, 0.0), (-80.0, -1.0)])
def test_extreme_logprobs_give_finite_losses_and_gradients(name, old, new):
    batch = make_batch(6, dtype=torch.float32)
    batch.logprobs = torch.full_like(batch.logprobs, new)
    batch.old_logprobs = torch.full_like(batch.logprobs, old)
    batch.ref_logprobs = torch.full_like(batch.logprobs, new - 50)
    batch.advantages = batch.advantages.abs()
    loss, gradient = loss_and_gradient(name, batch)
    assert loss.isfinite() and gradient.isfinite().all()


def test_kl_divergence_of_extreme_logits_is_exact():
    p = torch.tensor([[1000.0, -1000.0], [0.0, 0.0], [0.0, -float("inf")]], requires_grad=True)
    q = torch.tensor([[0.0, 0.0], [0.0, 0.0], [0.0, -float("inf")]])
    kl = kl_divergence(p, q)
    torch.testing.assert_close(kl, torch.tensor([2.0, 1.0, 1.0]).log())
    kl[:2].sum().backward()
    assert p.grad.isfinite().all()
    assert kl_divergence(torch.zeros(2), torch.tensor([0.0, -float("inf")])).item() == float("inf")


@given(st.integers(0, 2**16), st.integers(2, 6))
@few
def test_kl_divergence_is_a_divergence(seed, size):
    p, q = torch.randn(2, 3, size, generator=torch.Generator().manual_seed(seed)).double()
    kl = kl_divergence(p, q)
    assert kl.shape == (3,) and (kl >= 0).all()
    torch.testing.assert_close(kl_divergence(p, p + 5), torch.zeros(3).double(), atol=1e-12, rtol=0)
    expected = (p.softmax(-1) * (p.softmax(-1) / q.softmax(-1)).log()).sum(-1)
    torch.testing.assert_close(kl, expected)


# symmetries of the group advantages

ESTIMATORS = [group_mean_advantages, leave_one_out_advantages, group_normalized_advantages]
every_estimator = pytest.mark.parametrize("estimator", ESTIMATORS)


@st.composite
def grouped_rewards(draw):
    """(N,) float64 rewards in eighths, so that shifts are exact, and the group size."""
    groups, size = draw(st.integers(1, 4)), draw(st.integers(2, 5))
    eighths = draw(st.lists(st.integers(-16, 16), min_size=groups * size, max_size=groups * size))
    return torch.tensor(eighths, dtype=torch.float64) / 8, size


@every_estimator
@given(case=grouped_rewards(), shift=st.integers(-100, 100))
@few
def test_baseline_does_not_notice_an_offset(estimator, case, shift):
    rewards, size = case
    torch.testing.assert_close(
        estimator(rewards + shift, size), estimator(rewards, size), rtol=1e-9, atol=1e-9
    )


@every_estimator
@given(case=grouped_rewards(), seed=st.integers(0, 2**16))
@few
def test_advantages_move_with_their_rows_and_groups(estimator, case, seed):
    rewards, size = case
    generator = torch.Generator().manual_seed(seed)
    rows = torch.arange(len(rewards)).view(-1, size)
    rows = rows[torch.randperm(len(rows), generator=generator)]
    rows = rows[:, torch.randperm(size, generator=generator)].flatten()
    torch.testing.assert_close(estimator(rewards[rows], size), estimator(rewards, size)[rows])


@every_estimator
@given(case=grouped_rewards())
@few
def test_groups_do_not_see_each_other_and_their_advantages_sum_to_zero(estimator, case):
    rewards, size = case
    advantages = estimator(rewards, size)
    alone = torch.cat([estimator(group, size) for group in rewards.split(size)])
    torch.testing.assert_close(advantages, alone)
    sums = advantages.view(-1, size).sum(1)
    torch.testing.assert_close(sums, torch.zeros_like(sums), atol=1e-9, rtol=0)


@every_estimator
@pytest.mark.parametrize("reward", [0.0, 1.0, 0.1, 1.1, 2.3, 100.3])
@pytest.mark.parametrize("size", [2, 3, 7, 8, 16])
def test_group_of_equal_rewards_gets_zero_advantage(estimator, reward, size):
    """In float32 too, where the mean of equal numbers need not be that number."""
    advantages = estimator(torch.full((2 * size,), reward), size)
    torch.testing.assert_close(
        advantages, torch.zeros(2 * size), rtol=0, atol=1e-6 * max(1.0, reward)
    )


@given(case=grouped_rewards(), scale=st.sampled_from([0.5, 3.0, 10.0]))
@few
def test_normalized_advantages_forget_the_scale(case, scale):
    rewards, size = case
    advantages = group_normalized_advantages(rewards, size, eps=1e-9)
    torch.testing.assert_close(
        group_normalized_advantages(scale * rewards, size, eps=1e-9), advantages,
        rtol=1e-6, atol=1e-9,
    )  # fmt: skip
    torch.testing.assert_close(  # and exactly so when eps is scaled along
        group_normalized_advantages(scale * rewards, size, eps=scale * 1e-4),
        group_normalized_advantages(rewards, size, eps=1e-4),
    )
