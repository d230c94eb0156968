"""Advantages of a reward of several parts, each normalized by itself."""

from collections.abc import Iterator

import torch
from torch import Tensor

from rlcourse.algorithms.grpo import group_normalized_advantages
from rlcourse.checks.declaring import Case, CaseSampler, Sketch, tensor


def cases(draw: CaseSampler) -> Iterator[Case]:
    def case(label: str, parts: Tensor, weights: Tensor, group_size: int, **more) -> Case:
        return Case(label, {"parts": parts, "weights": weights, "group_size": group_size, **more})

    def drawn(rows: int, parts: int) -> Tensor:
        return torch.stack([draw.rewards(rows) for _ in range(parts)], dim=1)

    worked = tensor([[1.0, -40], [0, -20], [1, -60], [0, -30]])
    yield case("worked: right, and short", worked, tensor([1.0, 1.0]), 4)
    groups, size = draw.size(2, 3), draw.size(4, 6)
    yield case("several groups", drawn(groups * size, 2), tensor([1.0, 1.0]), size)
    yield case(
        "three parts of unlike weight", drawn(3 * size, 3), draw.uniform(3, low=0.3, high=2), size
    )
    scales = tensor([1.0, 30.0])
    yield case("parts of unlike scale", drawn(2 * size, 2) * scales, tensor([1.0, 0.5]), size)
    shift = torch.arange(3).double().repeat_interleave(size)[:, None] * 5
    yield case("groups of unlike rewards", drawn(3 * size, 2) + shift, tensor([1.0, 2.0]), size)
    binary = torch.stack([draw.binary_rewards(8), draw.binary_rewards(8)], dim=1)
    yield case("parts of 0 and 1", binary, tensor([1.0, 0.7]), 4)
    same = drawn(2 * size, 2)
    same[:size, 0] = 0.5
    yield case("a part that a group agrees on", same, tensor([1.0, 1.0]), size)
    yield case("a weight of 0", drawn(2 * size, 2), tensor([1.0, 0.0]), size)
    yield case("a negative weight", drawn(2 * size, 2), tensor([1.0, -0.5]), size)
    yield case("one part", drawn(2 * size, 1), tensor([0.4]), size)
    yield case("as many parts as rows in a group", drawn(9, 3), tensor([1.0, 0.5, 0.2]), 3)
    yield case("another eps", drawn(2 * size, 2), tensor([1.0, 1.0]), size, eps=0.5)
    yield case("everything equal", torch.ones(6, 2).double(), tensor([1.0, 1.0]), 3)
    yield case("a batch of one", drawn(1, 2), tensor([1.0, 1.0]), 1)
    yield case("float32", drawn(8, 2).float(), tensor([1.0, 1.0]).float(), 4)


def line_by_line(parts, weights, group_size, eps=1e-4):
    scored = [group_normalized_advantages(part, group_size, eps) for part in parts.T]
    total = sum(w * a for w, a in zip(weights, scored, strict=True))
    spread = total.std(correction=min(1, len(total) - 1))
    advantages = (total - total.mean()) / (spread + eps)
    return advantages


def all_at_once(parts, weights, group_size, eps=1e-4):
    """(B, G, K): normalized along G, summed along K, then over everything."""
    groups = parts.reshape(-1, group_size, parts.shape[1])
    centered = groups - groups.mean(1, keepdim=True)
    std = (centered.square().sum(1, keepdim=True) / max(1, group_size - 1)).sqrt()
    total = (centered / (std + eps) * weights).sum(2).flatten()
    off = total - total.mean()
    return off / ((off.square().sum() / max(1, len(off) - 1)).sqrt() + eps)


sketch = Sketch(line_by_line, group_normalized_advantages)
alternatives = (all_at_once,)
oracle = all_at_once
