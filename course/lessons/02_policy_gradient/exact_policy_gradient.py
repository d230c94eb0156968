"""The exact policy gradient of a softmax bandit."""

from collections.abc import Iterator

import torch

from rlcourse.algorithms.policy_gradient import (
    score_function,
)
from rlcourse.checks.declaring import Case, CaseSampler, Sketch, tensor
from rlcourse.courses.modules import beside

_score_function = beside(__file__, "score_function.py")
UNNORMALIZED = _score_function.UNNORMALIZED
WORKED = _score_function.WORKED


def cases(draw: CaseSampler) -> Iterator[Case]:
    yield Case("worked: only A pays", {"logits": WORKED, "rewards": tensor([1.0, 0.0, 0.0])})
    yield Case("worked: A and C pay", {"logits": WORKED, "rewards": tensor([1.0, 0.0, 1.0])})
    unnormalized = {"logits": UNNORMALIZED, "rewards": tensor([0.0, 1.0, 0.0])}
    yield Case("worked: logits of 1, 0 and 0", unnormalized)
    yield Case("equal rewards", {"logits": draw.normal(4), "rewards": torch.ones(4).double()})
    uniform = torch.zeros(draw.size(3, 5)).double()
    yield Case("equal logits", {"logits": uniform, "rewards": draw.rewards(len(uniform))})
    for size in (2, draw.size(3, 5), draw.size(6, 9)):
        arguments = {"logits": draw.normal(size), "rewards": draw.rewards(size)}
        yield Case(f"{size} actions", arguments)
    yield Case("rewards far from 0", {"logits": draw.normal(3), "rewards": 50 + draw.rewards(3)})
    yield Case("logits of ±1000", {"logits": tensor([1000.0, 0, 0]), "rewards": draw.rewards(3)})
    logits = draw.normal(4).float()
    yield Case("float32", {"logits": logits, "rewards": draw.rewards(4, logits.dtype)})


def _exact_by_autograd(logits, rewards):
    leaf = logits.detach().clone().requires_grad_()
    (leaf.softmax(0) @ rewards).backward()
    return leaf.grad


def _exact_by_scores(logits, rewards):
    probs = logits.softmax(0)
    return sum(probs[a] * rewards[a] * score_function(logits, a) for a in range(len(logits)))


def line_by_line(logits, rewards):
    probs = logits.softmax(0)
    expected = probs @ rewards
    gradient = probs * (rewards - expected)
    return gradient


def scores(logits):
    """Row a is the score of action a."""
    return torch.eye(len(logits), dtype=logits.dtype) - logits.softmax(0)


sketch = Sketch(line_by_line, scores)
alternatives = (_exact_by_autograd, _exact_by_scores)
oracle = _exact_by_autograd
