"""Lesson 07's functions: exact oracles, and what must hold always."""

from types import SimpleNamespace

import pytest
import torch
from algorithm_cases import make_batch
from hypothesis import given, settings
from hypothesis import strategies as st

from rlcourse import algorithms as A
from rlcourse.policy.toy import ToyPolicy

F64 = torch.float64
CLIPPED = {
    "dr_grpo_loss": {"max_tokens": 9},
    "dapo_loss": {},
    "gspo_loss": {},
}


def tensor(*values):
    return torch.tensor(values, dtype=F64)


def loss_and_gradient(name, batch, logprobs=None, **options):
    logprobs = (batch.logprobs if logprobs is None else logprobs).clone().requires_grad_()
    loss = getattr(A, name)(
        logprobs, batch.old_logprobs, batch.advantages, batch.mask, **CLIPPED[name] | options
    )
    (gradient,) = torch.autograd.grad(loss, logprobs)
    return loss.detach(), gradient


@pytest.fixture(params=range(3))
def batch(request):
    """Rows of different lengths, one of them empty."""
    return make_batch(request.param, rows=6, width=6, lengths=[6, 5, 3, 1, 0, 4])


# averages


def test_only_the_constant_average_does_not_ask_how_long_the_others_are():
    """The weight of a token: its gradient when another row gets longer, and when its own does."""

    def weight(how, own, other):
        x = torch.zeros(2, 9, dtype=F64, requires_grad=True)
        mask = torch.arange(9) < torch.tensor([[own], [other]])
        (gradient,) = torch.autograd.grad(A.aggregate(x, mask, how, 9), x)
        return gradient[0, 0].item()

    assert weight("constant", 2, 3) == weight("constant", 8, 3) == weight("constant", 2, 9)
    assert weight("sequence", 2, 3) == weight("sequence", 2, 9) == 4 * weight("sequence", 8, 9)
    assert weight("token", 2, 6) == weight("token", 6, 2) == 2 * weight("token", 8, 8)


# Exact expectations on a policy that can be enumerated: the first token decides the reward, the
# rest is filler of random length.


def expected_gradient(policy, how):
    """Of the objective with exact advantages, over all sentences."""
    everything = policy.trajectories()
    rewards = (everything.tokens[:, 0] == 1).double()
    probabilities = policy.probabilities().detach()
    advantages = rewards - probabilities @ rewards
    weights = len(rewards) * probabilities * advantages
    per_token = weights[:, None] * policy.logprobs(everything)
    objective = A.aggregate(per_token, everything.mask, how, policy.length)
    return torch.autograd.grad(objective, policy.logits)[0]


@pytest.mark.parametrize("seed", range(3))
def test_only_sums_leave_lengths_alone_where_the_reward_does_not_depend_on_them(seed):
    policy = ToyPolicy(vocab_size=3, length=4, seed=seed, eos_id=0)
    after_right, after_wrong = (policy.child(torch.tensor(0), torch.tensor(t)) for t in (1, 2))
    constant = expected_gradient(policy, "constant")
    assert constant[1:].abs().max() < 1e-12  # every row but the first is about length only
    truth = policy.expected_reward(lambda batch: (batch.tokens[:, 0] == 1).double())
    (exact,) = torch.autograd.grad(truth, policy.logits)
    torch.testing.assert_close(constant, exact / policy.length)

    per_completion = expected_gradient(policy, "sequence")
    stop = 0
    # Of any size, but in float64 never mistaken for rounding (which is below 1e-12, see above).
    assert per_completion[after_right, stop] > 1e-8  # right answers learn to end
    assert per_completion[after_wrong, stop] < -1e-8  # wrong ones learn to go on


# losses


@pytest.mark.parametrize("name", CLIPPED)
def test_on_policy_gradient_is_that_of_its_average(name, batch):
    batch.old_logprobs = batch.logprobs
    _, gradient = loss_and_gradient(name, batch)
    how = {"dr_grpo_loss": "constant", "dapo_loss": "token", "gspo_loss": "sequence"}
    leaf = batch.logprobs.clone().requires_grad_()
    objective = A.aggregate(leaf * batch.advantages[:, None], batch.mask, how[name], 9)
    (expected,) = torch.autograd.grad(-objective, leaf)
    torch.testing.assert_close(gradient, expected)


def test_dr_grpo_is_dapo_with_a_symmetric_band_up_to_the_number_of_tokens(batch):
    dapo = loss_and_gradient("dapo_loss", batch, clip_high=0.2)
    dr_grpo = loss_and_gradient("dr_grpo_loss", batch)
    tokens = batch.mask.sum()
    for a, b in zip(dapo, dr_grpo, strict=True):
        torch.testing.assert_close(a * tokens, b * 6 * 9)


@settings(max_examples=40, deadline=None)
@given(seed=st.integers(0, 10_000), name=st.sampled_from(sorted(CLIPPED)))
def test_padding_and_order_of_rows_never_matter(seed, name):
    batch = make_batch(seed)
    loss, gradient = loss_and_gradient(name, batch)
    garbage = torch.full_like(batch.logprobs, -700.0)
    dirty = torch.where(batch.mask, batch.logprobs, garbage)
    again, gradient_again = loss_and_gradient(name, batch, logprobs=dirty)
    torch.testing.assert_close(again, loss)
    torch.testing.assert_close(gradient_again, gradient)
    assert not gradient[~batch.mask].any()
    order = torch.randperm(len(batch.mask), generator=torch.Generator().manual_seed(seed))
    shuffled = SimpleNamespace(**{k: v[order] for k, v in vars(batch).items()})
    torch.testing.assert_close(loss_and_gradient(name, shuffled)[0], loss)


# groups, lengths, signs, targets


@settings(max_examples=60, deadline=None)
@given(st.lists(st.sampled_from([0.0, 0.1, 0.3, 1.0]), min_size=6, max_size=6))
def test_informative_groups_are_those_with_any_advantage(rewards):
    rewards = tensor(*rewards)
    advantages = A.group_normalized_advantages(rewards, 3).reshape(2, 3)
    assert A.informative_groups(rewards, 3).tolist() == (advantages != 0).any(1).tolist()


def test_overlong_penalty_at_its_corners():
    lengths = torch.tensor([0, 48, 52, 56, 64, 65, 1000])
    expected = torch.tensor([0.0, 0.0, -0.25, -0.5, -1.0, -1.0, -1.0])
    torch.testing.assert_close(A.overlong_penalty(lengths, 64, 16), expected)


@settings(max_examples=60, deadline=None)
@given(st.lists(st.floats(-5, 5), min_size=8, max_size=8), st.floats(0, 2))
def test_signs_are_those_of_the_advantages_beyond_the_margin(rewards, margin):
    rewards = tensor(*rewards)
    signs, advantages = A.sign_advantages(rewards, 4, margin), A.group_mean_advantages(rewards, 4)
    assert set(signs.tolist()) <= {-1.0, 0.0, 1.0}
    assert ((signs != 0) == (advantages.abs() > margin)).all()
    assert (signs * advantages >= 0).all()


def test_targets_move_with_the_sign_and_stay_probabilities():
    old = -torch.rand(6, 4, dtype=F64) * 5
    advantages = tensor(1.0, 0.01, 0.0, -0.01, -1.0, 0.0)
    targets = A.target_logprobs(old, advantages)
    assert (targets <= 0).all()
    assert ((targets - old).sign() == advantages.sign()[:, None]).all()
    torch.testing.assert_close(A.target_logprobs(targets, -advantages), old)  # root undoes square
