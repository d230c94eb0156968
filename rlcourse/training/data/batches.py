"""The rows that a step learns from. All randomness is a function of the seed and the step.

So the training data and the samples of step 57 do not depend on how the run got there, and a
checkpoint needs no record of random states or of the position in the data.
"""

import random
from collections.abc import Iterator, Sequence
from dataclasses import fields, replace
from typing import Any, TypeVar

import torch
from torch import Tensor, nn

from rlcourse.errors import UserError
from rlcourse.policy.rollouts import Rollouts

T = TypeVar("T")  # a problem, or a pair


def problems_of_step(
    problems: Sequence[T], count: int, step: int, seed: int, shuffle: bool = True
) -> list[T]:
    """The `count` problems of this step; each epoch goes through all of them in a new order.

    Without `shuffle`, every epoch goes through them in their original order.
    """
    if not problems:
        raise UserError("the task has no training problems")
    orders: dict[int, list[int]] = {}
    chosen = []
    for position in range(step * count, (step + 1) * count):
        epoch, place = divmod(position, len(problems))
        if shuffle and epoch not in orders:
            orders[epoch] = list(range(len(problems)))
            random.Random(f"{seed}/epoch/{epoch}").shuffle(orders[epoch])
        chosen.append(problems[orders[epoch][place] if shuffle else place])
    return chosen


def minibatches(rollouts: Rollouts, recipe, generator: torch.Generator) -> Iterator[Rollouts]:
    """`num_iterations` passes over the rollouts, each in `minibatches` random pieces."""
    if len(rollouts) == 0:
        return
    for _ in range(recipe.num_iterations):
        if recipe.minibatches == 1:
            yield rollouts
            continue
        order = torch.randperm(len(rollouts), generator=generator, device=generator.device)
        for rows in order.chunk(recipe.minibatches):
            yield trimmed(rollouts.rows(rows))


def trimmed(rollouts: Rollouts) -> Rollouts:
    """The same rows without the columns that are padding in all of them."""
    longest = [mask.sum(1).max() for mask in (rollouts.reads, rollouts.prompt_mask)]
    width, prompt = torch.stack(longest).tolist()  # one wait for a GPU
    skip = rollouts.prompt_mask.shape[1] - prompt
    narrow: dict[str, Any] = {}
    for f in fields(rollouts):
        value = getattr(rollouts, f.name)
        if isinstance(value, Tensor) and value.ndim == 2:
            is_prompt = f.name in ("prompt_tokens", "prompt_mask")
            narrow[f.name] = value[:, skip:] if is_prompt else value[:, :width]
    return replace(rollouts, **narrow)


def joined(batches: Sequence[Rollouts]) -> Rollouts:
    """The rows of several batches as one: prompts padded on the left, completions on the right."""
    joint: dict[str, Any] = {}
    for f in fields(Rollouts):
        values = [getattr(batch, f.name) for batch in batches]
        if not isinstance(values[0], Tensor):
            continue
        if values[0].ndim == 2:
            width = max(value.shape[1] for value in values)
            is_prompt = f.name in ("prompt_tokens", "prompt_mask")
            gaps = [width - value.shape[1] for value in values]
            sides = [(gap, 0) if is_prompt else (0, gap) for gap in gaps]
            values = [nn.functional.pad(v, side) for v, side in zip(values, sides, strict=True)]
        joint[f.name] = torch.cat(values)
    return replace(batches[0], **joint)
