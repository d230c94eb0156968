"""The scores weighted by the policy, whose rows sum to zero: why a baseline is free."""

from collections.abc import Iterator

import torch
from torch import Tensor

from rlcourse.algorithms.policy_gradient import score_function
from rlcourse.checks.declaring import Case, CaseSampler, tensor

WORKED = tensor([0.5, 0.3, 0.2]).log()  # the bandit of lesson 02: actions A, B, C


def cases(draw: CaseSampler) -> Iterator[Case]:
    yield Case("worked: π = (0.5, 0.3, 0.2)", {"logits": WORKED})
    yield Case("two actions", {"logits": draw.normal(2, scale=2)})
    for size in (draw.size(3, 5), draw.size(6, 9)):
        yield Case(f"{size} actions", {"logits": draw.normal(size, scale=2)})
    yield Case("equal logits", {"logits": torch.zeros(draw.size(3, 5)).double()})
    yield Case("logits of ±1000", {"logits": tensor([1000.0, 1000.5, -1000.0])})
    yield Case("float32", {"logits": draw.normal(5).float()})


def _scores(logits: Tensor) -> Tensor:
    return torch.eye(len(logits), dtype=logits.dtype) - logits.softmax(0)


def _overflowing(logits):
    probs = logits.exp() / logits.exp().sum()
    return probs.diag() - probs.outer(probs)


def _by_loop(logits):
    probs = logits.softmax(0)
    return torch.stack([probs[a] * score_function(logits, a) for a in range(len(logits))])


def _by_autograd(logits):
    """π ∇ log π is ∇π: row a is the gradient of the probability of a."""
    return torch.autograd.functional.jacobian(lambda x: x.softmax(0), logits.detach())


alternatives = (_by_loop, _by_autograd)
