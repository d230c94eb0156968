"""The score of a softmax bandit."""

from collections.abc import Iterator

import torch
from torch import Tensor

from rlcourse.algorithms.policy_gradient import (
    score_function,
)
from rlcourse.checks.calling import Case
from rlcourse.checks.cases import CaseSampler, tensor
from rlcourse.checks.exercise import Exercise, Mistake

WORKED = tensor([0.5, 0.3, 0.2]).log()  # the lesson's bandit: actions A, B, C
UNNORMALIZED = tensor([1.0, 0.0, 0.0])  # logits that are no log-probabilities


def _score_cases(draw: CaseSampler) -> Iterator[Case]:
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


EXERCISE = Exercise(
    reference=score_function,
    lesson="02_policy_gradient",
    section="The score of a softmax",
    points=2,
    difficulty=1,
    minutes=10,
    cases=_score_cases,
    mistakes=(
        Mistake(
            "π minus one-hot, the score with its sign turned",
            lambda logits, action: logits.softmax(0) - _one_hot(logits, action),
            "Raising an action's own logit makes it likelier, so its own entry must be positive: "
            "one-hot minus π.",
        ),
        Mistake(
            "the gradient of the probability, not of its logarithm",
            lambda logits, action: (
                logits.softmax(0)[action] * (_one_hot(logits, action) - logits.softmax(0))
            ),
            "∇ log π is ∇π divided by π: the factor π(action) cancels.",
        ),
        Mistake(
            "one-hot minus the raw logits",
            lambda logits, action: _one_hot(logits, action) - logits,
            "Logits are not probabilities: what is subtracted is their softmax.",
        ),
        Mistake(
            "exponentials that are not divided by their sum",
            _score_no_normalizer,
            "e to a logit is a probability only if the logits happen to be log-probabilities: "
            "divide by the sum, or call softmax.",
        ),
        Mistake(
            "one-hot minus the log-probabilities",
            lambda logits, action: _one_hot(logits, action) - logits.log_softmax(0),
            "The logarithm is gone once it is differentiated: what is subtracted is π itself.",
        ),
        Mistake(
            "the one-hot vector alone",
            lambda logits, action: _one_hot(logits, action),
            "The normalizer of the softmax depends on every logit as well, and its gradient is π.",
        ),
        Mistake(
            "a gradient that is 0 for every action but the chosen one",
            _score_chosen_only,
            "The other logits matter too: each of them takes probability away from the action, "
            "in proportion to its own probability.",
        ),
        Mistake(
            "the gradient with respect to the probabilities, 1/π(action)",
            lambda logits, action: _one_hot(logits, action) / logits.softmax(0),
            "The parameters are the logits: the chain rule goes on through the softmax.",
        ),
        Mistake(
            "the log-probabilities, not their gradient",
            lambda logits, action: logits.log_softmax(0),
            "The score is the gradient of one entry of these, log π(action), by all logits.",
        ),
        Mistake(
            "the score of the likeliest action",
            lambda logits, action: _one_hot(logits, logits.argmax()) - logits.softmax(0),
            "The score belongs to the action that was taken, likely or not.",
        ),
        Mistake(
            "a softmax that overflows",
            lambda logits, action: _one_hot(logits, action) - _unstable_softmax(logits),
            "The exponential of 1000 is infinite: torch's softmax subtracts the largest logit "
            "first, which changes nothing else.",
            telling=1,
        ),
    ),
    alternatives=(_score_by_autograd, _score_by_loop),
    hints=(
        "log π(action) is the action's logit minus logsumexp of all logits. Differentiate the two "
        "terms one after the other.",
        "The first term gives 1 for the action's own logit and 0 for the others: a one-hot vector. "
        "The gradient of logsumexp is the softmax.",
        "One-hot minus π, as a new tensor:\n\n"
        "    probs = logits.softmax(dim=-1)\n"
        "    chosen = torch.zeros_like(probs)\n"
        "    chosen[action] = ...\n"
        "    return ...",
    ),
)
