"""Lesson 18: what it says of the start, and the four tests before a training."""

import pytest
import torch

from rlcourse.algorithms import group_normalized_advantages
from rlcourse.policy.undecided import undecided
from rlcourse.tasks import correctness_reward
from rlcourse.tasks.dialects import dialect


@pytest.fixture(scope="module")
def batch():
    """16 questions of the practice dialect with 8 answers each, and their rewards."""
    start, problems = undecided(), dialect(2, train_size=1_000).train[:16]
    prompts = [start.format_prompt(problem.question) for problem in problems]
    generator = torch.Generator().manual_seed(0)
    rollouts = start.sample(prompts, group_size=8, max_tokens=32, generator=generator)
    answers = [problem.answer for problem in problems for _ in range(8)]
    return start, rollouts, correctness_reward(start.decode(rollouts), answers)


def test_the_start_is_right_about_two_times_in_five(batch):
    assert 0.2 < batch[2].mean() < 0.6


def test_the_ratio_is_1_before_the_first_step(batch):
    start, rollouts, _ = batch
    with torch.no_grad():
        ratio = (start.logprobs(rollouts) - rollouts.old_logprobs).exp()
    assert (ratio[rollouts.mask] - 1).abs().max() < 1e-3


def test_equal_rewards_move_only_a_loss_without_a_baseline(batch):
    _, rollouts, _ = batch
    lengths = []
    for weights in (torch.ones(128), group_normalized_advantages(torch.ones(128), 8)):
        policy = undecided()
        (weights * policy.logprobs(rollouts).sum(1)).mean().backward()
        gradients = [p.grad for p in policy.parameters()]
        lengths.append(torch.nn.utils.get_total_norm(gradients).item())
    assert lengths[0] > 0.5 and lengths[1] == 0
