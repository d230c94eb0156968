"""Generalized advantage estimation."""

from collections.abc import Iterator

import torch
from torch import Tensor

from rlcourse.algorithms.policies import masked_mean, returns_to_go
from rlcourse.algorithms.ppo import gae
from rlcourse.checks.declaring import Case, CaseSampler, Sketch, tensor


def cases(draw: CaseSampler) -> Iterator[Case]:
    def case(label: str, mask: Tensor, rewards=None, dtype=torch.float64, **options) -> Case:
        rewards = draw.normal(*mask.shape) if rewards is None else rewards
        values = draw.normal(*mask.shape)  # on padding too, where they must not matter
        arguments = {"rewards": rewards.to(dtype), "values": values.to(dtype), "mask": mask}
        return Case(label, {**arguments, **options})

    worked = {"rewards": tensor([[0.0, 0.0, 1.0]]), "values": tensor([[0.5, 0.6, 0.9]])}
    worked["mask"] = torch.ones(1, 3) > 0
    yield Case("worked: λ of ½", {**worked, "lam": 0.5})
    yield Case("worked: λ of 0, one-step TD", {**worked, "lam": 0.0})
    yield Case("worked: λ of 1, Monte Carlo", {**worked, "lam": 1.0})
    for label, logprobs, mask in draw.batches():
        yield case(label, mask, dtype=logprobs.dtype)
    rows, tokens = draw.size(3, 4), draw.size(5, 6)
    mask = draw.mask(rows, tokens)
    lam, gamma = (draw.uniform(1, low=0.3, high=0.9).item() for _ in range(2))
    yield case("another λ", mask, lam=lam)
    yield case("discounted", mask, gamma=gamma)
    yield case("discounted, another λ", mask, gamma=gamma, lam=lam)
    yield case("discounted, λ of 1", mask, gamma=gamma, lam=1.0)
    last = (torch.arange(tokens) == mask.sum(1, keepdim=True) - 1) * draw.rewards(rows)[:, None]
    yield case("a reward at the end", mask, rewards=last)
    yield case("no rewards", mask, rewards=torch.zeros(rows, tokens).double())


def _across_rows(rewards, values, mask, gamma=1.0, lam=0.95):
    advantages, returns = gae(rewards.T, values.T, mask.T, gamma, lam)
    return advantages.T, returns.T


def _in_place(rewards, values, mask, gamma=1.0, lam=0.95):
    values *= mask
    rewards *= mask
    return gae(rewards, values, mask, gamma, lam)


def _by_double_sum(rewards, values, mask, gamma=1.0, lam=0.95):
    """Equation 16 as it stands: Σ (γλ)^k δ_{t+k}."""
    rewards, values = rewards.detach(), values.detach()
    advantages = torch.zeros_like(values)
    for i, length in enumerate(mask.sum(1).long().tolist()):
        r, v = rewards[i, :length], values[i, :length]
        following = torch.cat([v[1:], v.new_zeros(1)]) if length else v
        delta = r + gamma * following - v
        for t in range(length):
            advantages[i, t] = sum((gamma * lam) ** k * d for k, d in enumerate(delta[t:]))
    return advantages, torch.where(mask.bool(), advantages + values, 0.0)


def _by_returns_first(rewards, values, mask, gamma=1.0, lam=0.95):
    """The λ-return by its own recursion, G = r + γ((1−λ) V' + λ G'), and A = G − V."""
    with torch.no_grad():
        real = mask.to(values.dtype)
        rewards, values = rewards * real, values * real
        G = torch.zeros_like(values[:, 0])
        following, out = G, []
        for t in range(values.shape[1] - 1, -1, -1):
            G = (rewards[:, t] + gamma * ((1 - lam) * following + lam * G)) * real[:, t]
            following = values[:, t]
            out.insert(0, G)
        returns = torch.stack(out, 1)
        return returns - values, returns


def line_by_line(rewards, values, mask, gamma=1.0, lam=0.95):
    real = mask.to(values.dtype)
    r = rewards.detach() * real
    v = values.detach() * real
    following = torch.cat([v[:, 1:], torch.zeros_like(v[:, :1])], 1)
    delta = r + gamma * following - v
    advantage, columns = torch.zeros_like(v[:, 0]), []
    for t in reversed(range(v.shape[1])):
        advantage = (delta[:, t] + gamma * lam * advantage) * real[:, t]
        columns = [advantage, *columns]
    advantages = torch.stack(columns, 1)
    returns = advantages + v
    return advantages, returns


def whitened(advantages, mask):
    centered = (advantages - masked_mean(advantages, mask)) * mask
    return centered / (masked_mean(centered**2, mask) + 1e-8).sqrt()


sketch = Sketch(line_by_line, whitened, returns_to_go)
alternatives = (_by_double_sum, _by_returns_first)
oracle = _by_double_sum
