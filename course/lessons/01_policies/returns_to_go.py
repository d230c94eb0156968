"""What each token of a completion can still earn."""

from collections.abc import Iterator

import torch
from torch import Tensor

from rlcourse.algorithms.policies import returns_to_go
from rlcourse.checks.declaring import Case, CaseSampler, Sketch, tensor


def cases(draw: CaseSampler) -> Iterator[Case]:
    def case(label: str, rewards: Tensor, mask: Tensor, **options) -> Case:
        return Case(label, {"rewards": rewards, "mask": mask, **options})

    def terminal(mask: Tensor) -> Tensor:
        """A reward on the last real token of each row, and noise on padding."""
        last = (torch.arange(mask.shape[1]) == mask.sum(1, keepdim=True) - 1).double()
        return last * draw.rewards(len(mask))[:, None] + (~mask) * draw.normal(*mask.shape)

    worked = tensor([[0.0, 0.0, 1.0], [2.0, 1.0, 0.0]])
    worked_mask = torch.tensor([[True, True, True], [True, True, False]])
    yield case("worked: γ of 1", worked, worked_mask)
    yield case("worked: γ of ½", worked, worked_mask, gamma=0.5)
    for label, _, mask in draw.batches():
        rewards = draw.normal(*mask.shape)
        if label == "float32":
            rewards = rewards.float()
        yield case(label, rewards, mask)
    mask = draw.mask(*draw.shape())
    yield case("a reward at the end", terminal(mask), mask, gamma=0.9)
    mask = draw.mask(draw.size(3, 4), draw.size(5, 6))
    gamma = draw.uniform(1, low=0.3, high=0.95).item()
    yield case("discounted", draw.normal(*mask.shape), mask, gamma=gamma)
    yield case("γ of 0", draw.normal(2, 4), draw.mask(2, 4), gamma=0.0)


def _in_place(rewards, mask, gamma=1.0):
    rewards *= mask
    for t in range(rewards.shape[1] - 2, -1, -1):
        rewards[:, t] += gamma * rewards[:, t + 1]
    return rewards


def _across_rows(rewards, mask, gamma=1.0):
    return returns_to_go(rewards.T, mask.T, gamma).T


def _by_division(rewards, mask, gamma=1.0):
    powers = gamma ** torch.arange(rewards.shape[1]).to(rewards)
    return returns_to_go(rewards * powers, mask) / powers * mask


def _both_ways(rewards, mask, gamma=1.0):
    steps = torch.arange(rewards.shape[1])
    weights = torch.tensor(gamma).to(rewards) ** (steps[:, None] - steps).abs()
    return (rewards * mask) @ weights * mask


def _by_matrix(rewards, mask, gamma=1.0):
    steps = torch.arange(rewards.shape[1])
    apart = steps[:, None] - steps[None, :]  # from column's token to row's reward
    weights = torch.where(apart >= 0, torch.tensor(gamma).to(rewards) ** apart.clamp(min=0), 0)
    return (rewards * mask) @ weights.to(rewards.dtype) * mask


def _by_double_loop(rewards, mask, gamma=1.0):
    out = torch.zeros_like(rewards)
    lengths = mask.sum(1).long().tolist()
    for i, length in enumerate(lengths):
        for t in range(length):
            out[i, t] = sum(gamma ** (k - t) * rewards[i, k] for k in range(t, length))
    return out


def line_by_line(rewards, mask, gamma=1.0):
    r = rewards * mask
    future, columns = torch.zeros_like(r[:, 0]), []
    for t in reversed(range(r.shape[1])):
        future = r[:, t] + gamma * future
        columns = [future, *columns]
    returns = torch.stack(columns, 1)
    return returns * mask


def discounts(rewards, gamma):
    return gamma ** torch.arange(rewards.shape[1]).to(rewards)


def last_reward(rewards, mask):
    return rewards.gather(1, (mask.long().sum(1, keepdim=True) - 1).clamp(min=0))


sketch = Sketch(line_by_line, last_reward, discounts)
alternatives = (_by_matrix, _by_double_loop)
