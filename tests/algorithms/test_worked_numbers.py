"""Every number that lessons 01–06 work out by hand."""

import math

import pytest
import torch

from rlcourse import algorithms as A
from rlcourse.tasks.rewards import extract_answer

F64 = torch.float64


def tensor(*values):
    return torch.tensor(values, dtype=F64)


def one_token(probability, requires_grad=False):
    """(1, 1) log-probability of one sampled token."""
    return tensor(probability).log().view(1, 1).requires_grad_(requires_grad)


ONE = torch.ones(1, 1, dtype=torch.bool)


# 01 policies


def test_log_of_eighty_five_percent():
    logits = tensor(0.85, 0.15).log().expand(1, 2, 2)
    assert A.token_logprobs(logits, torch.zeros(1, 2, dtype=torch.long)).item() == pytest.approx(
        -0.1625, abs=5e-5
    )


def test_four_of_eighteen_apples_are_eaten():
    text = "3 bags of 6 apples are 3×6=18 apples. James eats 4, so 18−4=14 are left.\n#### 14"
    assert extract_answer(text) == "14"


# 02 policy_gradient


def test_score_times_probability_is_the_gradient_of_the_probability():
    p = torch.tensor(0.3, dtype=F64, requires_grad=True)
    (score,) = torch.autograd.grad(p.log(), p)
    assert score.item() == pytest.approx(3.333, abs=5e-4)
    assert (p * score).item() == pytest.approx(1.0)
    # reinforce_loss sees the same derivative: reward 1, one token
    (gradient,) = torch.autograd.grad(A.reinforce_loss(p.log().view(1, 1), tensor(1.0), ONE), p)
    assert gradient.item() == pytest.approx(-1 / 0.3)


SCORES = {0: (0.5, -0.3, -0.2), 1: (-0.5, 0.7, -0.2), 2: (-0.5, -0.3, 0.8)}
WEIGHTED = {0: (0.25, -0.15, -0.10), 1: (-0.15, 0.21, -0.06), 2: (-0.10, -0.06, 0.16)}


@pytest.mark.parametrize("action", SCORES)
def test_softmax_scores(action):
    policy = tensor(0.5, 0.3, 0.2)
    score = A.score_function(policy.log(), action)
    torch.testing.assert_close(score, tensor(*SCORES[action]))
    torch.testing.assert_close(policy[action] * score, tensor(*WEIGHTED[action]))


def test_scores_weighted_by_the_policy_sum_to_zero():
    rows = A.weighted_scores(tensor(0.5, 0.3, 0.2).log())
    torch.testing.assert_close(rows, torch.stack([tensor(*WEIGHTED[a]) for a in range(3)]))
    torch.testing.assert_close(rows.sum(0), torch.zeros(3).double())


# 03 baselines


def test_question_solved_nine_times_of_ten():
    advantages = A.group_mean_advantages(tensor(*[1.0] * 9, 0.0), 10)
    torch.testing.assert_close(advantages, tensor(*[0.1] * 9, -0.9))


def test_the_one_failure_among_sixteen():
    advantages = A.group_mean_advantages(tensor(*[1.0] * 15, 0.0), 16)
    torch.testing.assert_close(advantages, tensor(*[0.0625] * 15, -0.9375))


def test_the_one_success_among_sixteen():
    advantages = A.group_mean_advantages(tensor(1.0, *[0.0] * 15), 16)
    torch.testing.assert_close(advantages, tensor(0.9375, *[-0.0625] * 15))


# 04 importance_sampling


@pytest.mark.parametrize("new, old, ratio", [(0.7, 0.5, 1.4), (0.1, 0.3, 1 / 3)])
@pytest.mark.parametrize("level", ["token", "sequence"])
def test_importance_weight_of_one_token(new, old, ratio, level):
    weight = A.importance_weights(one_token(new), one_token(old), ONE, level=level)
    assert weight.item() == pytest.approx(ratio)


def test_kl_of_a_slightly_loaded_coin():
    kl = A.kl_divergence(tensor(0.6, 0.4).log(), tensor(0.5, 0.5).log())
    assert kl.item() == pytest.approx(0.02014, abs=5e-6)


# 05 ppo

CLIP_TABLE = [
    *[(+1, ratio, value) for ratio, value in
      [(0.8, 0.8), (1.0, 1.0), (1.2, 1.2), (1.5, 1.2), (10, 1.2), (50, 1.2)]],
    *[(-1, ratio, value) for ratio, value in
      [(1.2, -1.2), (1.0, -1.0), (0.8, -0.8), (0.556, -0.8), (0.111, -0.8), (1.5, -1.5)]],
]  # fmt: skip


@pytest.mark.parametrize("advantage, ratio, objective", CLIP_TABLE)
def test_clip_table(advantage, ratio, objective):
    loss, _ = A.ppo_clip_loss(tensor(ratio).log().view(1, 1), torch.zeros(1, 1).double(),
                              tensor(float(advantage)), ONE, clip=0.2)  # fmt: skip
    assert -loss.item() == pytest.approx(objective)


@pytest.mark.parametrize(
    "advantage, ratio, stopped",
    [(+1, 0.5, 0), (+1, 1.0, 0), (+1, 1.5, 1), (-1, 0.556, 1), (-1, 1.0, 0), (-1, 1.5, 0)],
)
def test_clip_stops_only_the_gradient_that_leads_further_out(advantage, ratio, stopped):
    logprobs = tensor(ratio).log().view(1, 1).requires_grad_()
    loss, fraction = A.ppo_clip_loss(logprobs, torch.zeros(1, 1).double(),
                                     tensor(float(advantage)), ONE)  # fmt: skip
    (gradient,) = torch.autograd.grad(loss, logprobs)
    assert gradient.item() == pytest.approx(0.0 if stopped else -advantage * ratio)
    assert float(fraction) == stopped


def test_likely_token_cannot_reach_the_upper_edge_of_the_band():
    weight = A.importance_weights(one_token(1.0), one_token(0.9), ONE)
    assert weight.item() == pytest.approx(1.111, abs=5e-4)


def test_factoring_a_negative_advantage_out_of_the_min_is_wrong():
    advantage, ratio = tensor(-1.0), tensor(0.556)
    factored = advantage * torch.min(ratio, ratio.clamp(0.8, 1.2))
    assert factored.item() == pytest.approx(-0.556)
    loss, _ = A.ppo_clip_loss(ratio.log().view(1, 1), torch.zeros(1, 1).double(), advantage, ONE)
    assert -loss.item() == pytest.approx(-0.8)


# 06 grpo


def test_group_of_three_right_and_two_wrong():
    rewards = tensor(1.0, 1.0, 0.0, 1.0, 0.0)
    assert rewards.mean().item() == pytest.approx(0.6)
    assert rewards.std(unbiased=False).item() == pytest.approx(0.4899, abs=5e-5)
    assert rewards.std().item() == pytest.approx(0.5477, abs=5e-5)
    population = (rewards - rewards.mean()) / rewards.std(unbiased=False)
    torch.testing.assert_close(
        population, tensor(0.816, 0.816, -1.225, 0.816, -1.225), atol=1e-3, rtol=0
    )
    torch.testing.assert_close(
        A.group_normalized_advantages(rewards, 5),
        tensor(0.730, 0.730, -1.095, 0.730, -1.095), atol=1e-3, rtol=0,
    )  # fmt: skip


def test_half_right_group_of_four():
    rewards = tensor(1.0, 0.0, 1.0, 0.0)
    population = (rewards - rewards.mean()) / rewards.std(unbiased=False)
    torch.testing.assert_close(population, tensor(1.0, -1.0, 1.0, -1.0))
    torch.testing.assert_close(
        A.group_normalized_advantages(tensor(1.0, 0.0, 0.0, 1.0), 4, eps=1e-4),
        tensor(0.86588, -0.86588, -0.86588, 0.86588), atol=5e-6, rtol=0,
    )  # fmt: skip


@pytest.mark.parametrize(
    "reference, kl_gradient, total",
    [(0.5, -0.0056, 0.0144), (0.1, -0.0278, -0.0078), (1e-50, -0.0333, -0.0133)],
)
def test_just_below_the_clip_boundary_the_kl_can_win(reference, kl_gradient, total):
    def objective_gradient(advantage, beta):
        p = torch.tensor(0.6 - 1e-9, dtype=F64, requires_grad=True)
        loss = A.grpo_loss(p.log().view(1, 1), one_token(0.5), one_token(reference),
                           tensor(advantage), ONE, clip=0.2, beta=beta)  # fmt: skip
        return -torch.autograd.grad(loss, p)[0].item()

    assert objective_gradient(0.01, beta=0.0) == pytest.approx(0.020)
    assert objective_gradient(0.0, beta=0.02) == pytest.approx(kl_gradient, abs=5e-5)
    assert objective_gradient(0.01, beta=0.02) == pytest.approx(total, abs=6e-5)


def test_at_the_first_update_the_loss_is_zero_and_its_gradient_is_not():
    advantages = A.group_normalized_advantages(tensor(1.0, 0.0, 0.0, 1.0), 4)
    logprobs = -torch.rand(4, 3, dtype=F64, generator=torch.Generator().manual_seed(0))
    mask = torch.tensor([[1, 1, 1], [1, 0, 0], [1, 1, 0], [1, 1, 1]], dtype=torch.bool)
    current = logprobs.clone().requires_grad_()
    loss = A.grpo_loss(current, logprobs, logprobs, advantages, mask)
    (gradient,) = torch.autograd.grad(loss, current)
    assert loss.item() == pytest.approx(0.0, abs=1e-12)
    assert gradient.norm().item() > 0.1


def test_nats_not_bits():
    """log 2 of entropy for a fair coin."""
    assert A.token_entropy(torch.zeros(1, 1, 2)).item() == pytest.approx(math.log(2))
