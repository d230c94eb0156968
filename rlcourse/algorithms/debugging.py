"""Lesson 10: what tells a broken run from a healthy one.

A reward curve rises in spite of many mistakes. What finds them are quantities whose
right value is known without knowing the answer: a gap that is 0, a loss that has no
gradient, a mask that ends where the text does. A probe asks for one of them before
the first step; `diagnose` reads all of them off a run's record.
"""

from collections.abc import Callable

import torch
from torch import Tensor


def probe_gap(
    logprobs: Tensor, old_logprobs: Tensor, mask: Tensor
) -> tuple[Tensor, Tensor]:
    """How far trainer and sampler disagree before an update: the mean, the maximum.

    (N, T), (N, T), (N, T) → two scalars, in nats: |log πθ − log πold| over real
    tokens, 0 where there are none. Both score the same tokens with the same weights,
    so that only rounding is left: below 1e-5 on the mean in float32.
    """
    gap = (logprobs - old_logprobs).abs().masked_fill(~mask.bool(), 0)
    return gap.sum() / mask.sum().clamp(min=1), gap.max()


def probe_equal_rewards(estimator: Callable, n_groups: int, group_size: int) -> Tensor:
    """The largest |advantage| where no completion is better than its siblings: scalar.

    `estimator(rewards, group_size)` turns rewards (N,), floating point, into
    advantages (N,), the rows of a group contiguous. All completions of group i, from 0
    on, get reward i. An estimator that compares within groups gives 0.
    """
    groups = torch.arange(n_groups, dtype=torch.float64)
    rewards = groups.repeat_interleave(group_size)
    return estimator(rewards, group_size).abs().max()


def probe_shuffled_rewards(rewards: Tensor, generator: torch.Generator) -> Tensor:
    """The same rewards, dealt out at random among all completions of the batch.

    (N,) → (N,). What a completion earns then says nothing about it: a run with these
    rewards must not learn. One that does learns from something else.
    """
    order = torch.randperm(len(rewards), generator=generator, device=generator.device)
    return rewards[order.to(rewards.device)]


def probe_mask(loss: Callable, tokens: Tensor, eos_id: int) -> tuple[Tensor, Tensor]:
    """Tokens that the loss forgets, and tokens that it should not see: two counts.

    `loss(logprobs)` is a scalar, `logprobs` (N, T) like `tokens`. A token counts in the
    loss if its gradient is not 0. Those up to and including a row's first EOS should,
    what follows is padding; a row without an EOS was cut off and is real to its end.
    """
    logprobs = torch.full_like(tokens, -1.0, dtype=torch.float64, requires_grad=True)
    (gradient,) = torch.autograd.grad(loss(logprobs), logprobs)
    counted = gradient != 0
    ended = (tokens == eos_id).long()
    real = ended.cumsum(dim=1) - ended == 0
    return (real & ~counted).sum(), (counted & ~real).sum()


def diagnose(run: dict) -> str:
    """What is wrong with a recorded run, by the name of its cause, or "healthy".

    `run` holds metrics, each (steps,), and settings, each a number; no samples. Causes:
    "padding_counted", "masked_eos", "all_truncated", "wrong_grouping",
    "missing_temperature", "dropout", "stale_sampler", "ratio_one",
    "bfloat16_weights", "kl_sign", "unreadable_gold", "empty_answer".
    """
    gap, unearned = run["gap/mean"], run["reward/mean"] - run["accuracy"]
    outside = run["clip_ratio/low"] + run["clip_ratio/high"]
    # A temperature above 1 that is left out raises no token far; dropout does.
    sharper = run["temperature"] != 1 and run["ratio/max"].nanmedian() < 2
    signals = {
        "padding_counted": run["loss_tokens"].nanmean() > 1.001,
        "masked_eos": run["loss_tokens"].nanmean() < 0.999,
        "all_truncated": run["completions/clipped_ratio"].mean() > 0.9,
        "wrong_grouping": run["advantages/equal_rewards"].max() > 0.01,
        "missing_temperature": gap[0] > 1e-3 and sharper,
        "dropout": gap[0] > 1e-3,
        "stale_sampler": gap.max() > 1e-3,
        "ratio_one": outside.max() > 0 and run["clip_ratio"].max() == 0,
        "bfloat16_weights": run["weights_changed"].mean() < 0.5,
        "kl_sign": run["beta"] > 0 and run["loss"][-1] < 0,
        "unreadable_gold": unearned[0] > 0.3,
        "empty_answer": unearned.max() > 0.2,
    }
    return next((cause for cause, found in signals.items() if found), "healthy")
