"""The expected score, which is zero: why a baseline is free."""

from collections.abc import Iterator

import torch
from torch import Tensor

from rlcourse.algorithms.baselines import expected_score
from rlcourse.algorithms.policy_gradient import score_function
from rlcourse.checks.calling import Case
from rlcourse.checks.cases import CaseSampler, tensor
from rlcourse.checks.exercise import Exercise, Mistake

WORKED = tensor([0.5, 0.3, 0.2]).log()  # the bandit of lesson 02: actions A, B, C


def _score_cases(draw: CaseSampler) -> Iterator[Case]:
    yield Case("worked: π = (0.5, 0.3, 0.2)", {"logits": WORKED})
    yield Case("two actions", {"logits": draw.normal(2, scale=2)})
    for size in (draw.size(3, 5), draw.size(6, 9)):
        yield Case(f"{size} actions", {"logits": draw.normal(size, scale=2)})
    yield Case("one action", {"logits": draw.normal(1)})
    yield Case("equal logits", {"logits": torch.zeros(draw.size(3, 5)).double()})
    yield Case("logits of ±1000", {"logits": tensor([1000.0, 0.0, -1000.0])})
    yield Case("float32", {"logits": draw.normal(5).float()})
    # A sum that was computed cannot be 0 here; this is how a literal 0 is found out.
    yield Case("a logit that is not a number", {"logits": tensor([0.5, torch.nan, 0.2])})


def _scores(logits: Tensor) -> Tensor:
    return torch.eye(len(logits), dtype=logits.dtype) - logits.softmax(0)


def _weighted(logits: Tensor) -> Tensor:
    return logits.softmax(0)[:, None] * _scores(logits)


def _overflowing(logits):
    probs = logits.exp() / logits.exp().sum()
    return probs - probs * probs.sum()


def _expected_by_loop(logits):
    probs, total = logits.softmax(0), torch.zeros_like(logits)
    for action in range(len(logits)):
        total = total + probs[action] * score_function(logits, action)
    return total


def _expected_by_autograd(logits):
    leaf = logits.detach().clone().requires_grad_()
    logprobs = leaf.log_softmax(0)
    (logprobs.detach().exp() * logprobs).sum().backward()
    return leaf.grad


def _expected_by_table(logits):
    return _weighted(logits).sum(0)


EXERCISE = Exercise(
    reference=expected_score,
    lesson="03_baselines",
    section="Why it is free",
    points=2,
    difficulty=1,
    minutes=5,
    cases=_score_cases,
    mistakes=(
        Mistake(
            "zeros written down, not computed",
            torch.zeros_like,
            "The value is right, and nothing is shown by it: the point is to see the scores "
            "cancel, so sum them. (On a logit that is not a number no computed sum is 0.)",
        ),
        Mistake(
            "the scores of probabilities taken for logits",
            lambda logits: logits.softmax(0) @ _scores(logits.softmax(0)),
            "`score_function` takes logits and applies the softmax itself; π is only the weight.",
        ),
        Mistake(
            "the sum of the scores, not weighted by π",
            lambda logits: _scores(logits).sum(0),
            "An expectation under the policy weighs every action by how often it is taken.",
        ),
        Mistake(
            "the plain mean of the scores over the actions",
            lambda logits: _scores(logits).mean(0),
            "The actions are not equally likely: weigh each score by π(a).",
        ),
        Mistake(
            "scores weighted by logits in place of probabilities",
            lambda logits: logits @ _scores(logits),
            "Logits are not probabilities: take their softmax.",
        ),
        Mistake(
            "scores weighted by log-probs in place of probabilities",
            lambda logits: logits.log_softmax(0) @ _scores(logits),
            "The weight of an action is its probability π(a), not the logarithm of it.",
        ),
        Mistake(
            "scores weighted by π twice",
            lambda logits: (logits.softmax(0) ** 2) @ _scores(logits),
            "∇ log π has no factor π in it any more: one weight π(a) is all there is.",
        ),
        Mistake(
            "π alone, the one-hot halves of the scores",
            lambda logits: logits.softmax(0),
            "Each score is one-hot *minus π*; the second halves add up to −π.",
        ),
        Mistake(
            "minus π alone, without the one-hot halves",
            lambda logits: -logits.softmax(0),
            "Each score is *one-hot* minus π; weighted by π, the first halves add up to π.",
        ),
        Mistake(
            "the score of the likeliest action",
            lambda logits: score_function(logits, logits.argmax()),
            "An expectation runs over all actions, not only the one that comes up most.",
        ),
        Mistake(
            "the weighted scores, not yet summed",
            _weighted,
            "Sum the rows: one number for each logit, (V,), is left.",
        ),
        Mistake(
            "one number in place of one for each logit",
            lambda logits: _weighted(logits).sum(),
            "The sum runs over actions only; a score has an entry for each logit, and so has "
            "their average.",
        ),
        Mistake(
            "a softmax that overflows",
            _overflowing,
            "The exponential of 1000 is infinite: torch's softmax subtracts the largest logit "
            "first, which changes nothing else.",
            telling=1,
        ),
    ),
    alternatives=(_expected_by_loop, _expected_by_autograd, _expected_by_table),
    hints=(
        "You have `score_function(logits, action)` from lesson 02. An expectation is a sum over "
        "all actions.",
        "Stack the scores of all V actions, one a row, and add the rows up, each weighted by the "
        "probability of its action.",
        "In two lines:\n\n"
        "    scores = torch.stack([score_function(logits, a) for a in range(...)])  # (V, V)\n"
        "    return logits.softmax(dim=-1) @ ...",
    ),
)
