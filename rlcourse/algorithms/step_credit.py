"""Lesson 16: credit for the steps of an answer.

An answer in lines is a row of steps. A program that checks lines pays each of them;
continuing from a line many times says what it is worth. Either way every token gets
the credit of its own step in place of the whole answer's. And where several answers
were drawn, scores say whose vote counts how much.
"""

from collections.abc import Sequence

import torch
from torch import Tensor


def step_ids(tokens: Tensor, mask: Tensor, newline: int) -> Tensor:
    """Which step each token belongs to, from 0 on: (N, T), (N, T) → (N, T) long.

    `newline` is the id of the token that ends a step, and belongs to the step that it
    ends. On padding, where `mask` is 0 and `tokens` may hold anything, the number is 0.
    Source: Lightman et al. 2023, "Let's Verify Step by Step", whose steps are lines,
    too.
    """
    real = mask.bool()
    ends = ((tokens == newline) & real).long()
    return (ends.cumsum(dim=1) - ends).masked_fill(~real, 0)


def step_advantages(
    rewards: Tensor, ids: Tensor, mask: Tensor, group_size: int
) -> Tensor:
    """Rewards of steps to advantages of tokens: (N, S), (N, T), (N, T) → (N, T).

    `rewards[i, s]` is the reward of step s of completion i, 0 where it has fewer
    steps; `ids` are `step_ids`. A step's return is the sum of its reward and those of
    all later steps. Its advantage is the return minus the mean of the returns at step
    s over the completions of its group, those without a step s among them. All
    tokens of a step get its advantage, padding gets 0. Rows iG … iG+G−1 are one group.
    Source: Uesato et al. 2022, "Solving math word problems with process- and
    outcome-based feedback"; the reward to go, as Shao et al. 2024 (DeepSeekMath),
    section 4.1.3, here with the baseline by step.
    """
    returns = rewards.flip(1).cumsum(dim=1).flip(1)
    groups = returns.reshape(-1, group_size, rewards.shape[1])
    centered = (groups - groups.mean(dim=1, keepdim=True)).reshape(returns.shape)
    return centered.gather(1, ids).masked_fill(~mask.bool(), 0)


def value_advantages(
    values: Tensor, outcomes: Tensor, ids: Tensor, mask: Tensor
) -> Tensor:
    """What each step added to the value: (N, S), (N,), (N, T), (N, T) → (N, T).

    `values[i, s]` is the expected outcome of completion i *before* its step s, so
    `values[i, 0]` is that of the question; where it has no step s it may be anything.
    The advantage of a step is the value after it minus the value before it, and after
    the last step the value is the outcome. All tokens of a step get its advantage,
    padding gets 0. `ids` are `step_ids`.
    Source: Kazemnejad et al. 2024, "VinePPO", with steps for their states.
    """
    last = ids.masked_fill(~mask.bool(), 0).amax(dim=1, keepdim=True)
    after = torch.cat([values[:, 1:], outcomes[:, None]], dim=1)
    after = after.scatter(1, last, outcomes[:, None])
    return (after - values).gather(1, ids).masked_fill(~mask.bool(), 0)


def weighted_vote(answers: Sequence[str | None], scores: Tensor) -> str | None:
    """The answer with the largest sum of scores: n answers, (n,) → one of them.

    Completions with equal answers add up their `scores`, which are not negative. None
    has no vote, and None is the result where nobody votes. Of equal sums the answer
    given first wins.
    Source: Li et al. 2023, "Making Language Models Better Reasoners with Step-Aware
    Verifier"; Uesato et al. 2022 call it reward-model-weighted decoding.
    """
    totals: dict[str, float] = {}
    for answer, score in zip(answers, scores.tolist(), strict=True):
        if answer is not None:
            totals[answer] = totals.get(answer, 0.0) + score
    return max(totals, key=lambda answer: totals[answer], default=None)
