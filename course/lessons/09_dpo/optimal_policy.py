"""The policy that maximizes reward on a KL leash, in closed form."""

from collections.abc import Iterator

import torch
from torch import Tensor

from rlcourse.checks.declaring import Case, CaseSampler, tensor


def cases(draw: CaseSampler) -> Iterator[Case]:
    def case(label: str, ref_probs: Tensor, rewards: Tensor, beta: float) -> Case:
        return Case(label, {"ref_probs": ref_probs, "rewards": rewards, "beta": beta})

    lesson = tensor([0.5, 0.3, 0.2])
    yield case("worked: only B pays, β = 1", lesson, tensor([0.0, 1.0, 0.0]), 1.0)
    yield case("worked: only B pays, β = 0.5", lesson, tensor([0.0, 1.0, 0.0]), 0.5)
    yield case("equal rewards change nothing", lesson, tensor([2.0, 2.0, 2.0]), 0.3)
    uniform = torch.full((4,), 0.25).double()
    yield case("a uniform reference", uniform, draw.rewards(4), 0.7)
    for size, beta in ((draw.size(3, 5), 0.4), (draw.size(6, 9), 2.5), (2, 1.0)):
        yield case(f"β = {beta}", draw.probabilities(size), draw.rewards(size), beta)
    yield case("a short leash, β = 50", draw.probabilities(4), draw.rewards(4), 50.0)
    yield case("rewards of ±1000", lesson, tensor([-1000.0, 1000.0, 999.0]), 0.5)
    never = tensor([0.6, 0.4, 0.0])
    yield case("an answer that the reference never gives", never, tensor([0.0, 0.5, 60.0]), 1.0)
    tempting = tensor([0.0, 0.5, 60.0])  # by the last one, which cannot happen
    yield case("an answer that the reference never gives, β = 0.05", never, tempting, 0.05)
    yield case("float32", draw.probabilities(5).float(), draw.rewards(5).float(), 0.5)


def _normalized(weights: Tensor) -> Tensor:
    return weights / weights.sum()


def _greedy(ref_probs, rewards, beta):
    return (torch.arange(len(rewards)) == rewards.argmax()).to(ref_probs.dtype)


def _shifted_by_any(ref_probs, rewards, beta):
    return _normalized(ref_probs * torch.exp((rewards - rewards.max()) / beta))


def _by_logsumexp(ref_probs, rewards, beta):
    scores = ref_probs.double().log() + rewards.double() / beta
    return torch.exp(scores - scores.logsumexp(dim=0)).to(ref_probs.dtype)


def _by_loop(ref_probs, rewards, beta):
    pairs = list(zip(ref_probs, rewards, strict=True))
    top = max(r for p, r in pairs if p > 0)
    weights = [p * torch.exp((r - top) / beta) if p > 0 else p for p, r in pairs]
    return torch.stack([weight / sum(weights) for weight in weights])


alternatives = (_by_logsumexp, _by_loop)
oracle = _by_logsumexp
