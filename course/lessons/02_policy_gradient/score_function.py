"""The score of a softmax bandit."""

from collections.abc import Iterator

import torch
from torch import Tensor

from rlcourse.checks.declaring import Case, CaseSampler, tensor

WORKED = tensor([0.5, 0.3, 0.2]).log()  # the lesson's bandit: actions A, B, C


UNNORMALIZED = tensor([1.0, 0.0, 0.0])  # logits that are no log-probabilities


def cases(draw: CaseSampler) -> Iterator[Case]:
    for action, name in enumerate("ABC"):
        yield Case(f"worked: action {name}", {"logits": WORKED, "action": action})
    yield Case("worked: logits of 1, 0 and 0", {"logits": UNNORMALIZED, "action": 0})
    size = draw.size(3, 5)
    yield Case("the last action", {"logits": draw.normal(size), "action": size - 1})
    for label, size in (("two actions", 2), ("random logits", 4), ("many actions", 9)):
        action = draw.integer(0, size - 1)
        yield Case(label, {"logits": draw.normal(size, scale=2), "action": action})
    logits = draw.normal(4)
    yield Case("the unlikeliest action", {"logits": logits, "action": int(logits.argmin())})
    yield Case("an action as a tensor", {"logits": draw.normal(3), "action": torch.tensor(1)})
    yield Case("logits of ±1000", {"logits": tensor([1000.0, 0.0, -1000.0]), "action": 1})
    yield Case("float32", {"logits": draw.normal(5).float(), "action": 2})


def _one_hot(logits: Tensor, action) -> Tensor:
    return (torch.arange(len(logits)) == action).to(logits.dtype)


def _unstable_softmax(logits: Tensor) -> Tensor:
    return logits.exp() / logits.exp().sum()


def _score_no_normalizer(logits, action):
    return _one_hot(logits, action) - logits.exp()


def _score_chosen_only(logits, action):
    return _one_hot(logits, action) * (1 - logits.softmax(0)[action])


def _score_by_autograd(logits, action):
    leaf = logits.detach().clone().requires_grad_()
    leaf.log_softmax(0)[action].backward()
    return leaf.grad


def _score_by_loop(logits, action):
    probs = torch.exp(logits - logits.logsumexp(0))
    return torch.stack([(1.0 if k == action else 0.0) - p for k, p in enumerate(probs)])


alternatives = (_score_by_autograd, _score_by_loop)
