"""The scores weighted by the policy, whose rows sum to zero: why a baseline is free."""

from collections.abc import Iterator

import torch
from torch import Tensor

from rlcourse.algorithms.baselines import weighted_scores
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


def _by_outer_product(logits):
    probs = logits.softmax(0)
    return probs.diag() - probs.outer(probs)


EXERCISE = Exercise(
    reference=weighted_scores,
    lesson="03_baselines",
    section="Why it is free",
    points=2,
    difficulty=1,
    minutes=5,
    cases=_score_cases,
    mistakes=(
        Mistake(
            "zeros, which is what the rows sum to",
            lambda logits: logits.new_zeros(len(logits), len(logits)),
            "Each row pulls in a direction of its own; only together they cancel.",
        ),
        Mistake(
            "the sum of the rows, which is zero",
            lambda logits: logits.softmax(0) @ _scores(logits),
            "Leave the rows apart, (V, V): summing them is the next step, and shows that they "
            "cancel.",
        ),
        Mistake(
            "the scores, not weighted by π",
            _scores,
            "An expectation under the policy weighs every action by how often it is taken.",
        ),
        Mistake(
            "each score divided by the number of actions",
            lambda logits: _scores(logits) / len(logits),
            "The actions are not equally likely: weigh each score by π(a).",
        ),
        Mistake(
            "each column weighted, not each row",
            lambda logits: _scores(logits) * logits.softmax(0),
            "Row a is the score of action a, so π(a) multiplies a whole row: make a column of π "
            "with `[:, None]`.",
        ),
        Mistake(
            "scores weighted by logits in place of probabilities",
            lambda logits: logits[:, None] * _scores(logits),
            "Logits are not probabilities: take their softmax.",
        ),
        Mistake(
            "scores weighted by log-probs in place of probabilities",
            lambda logits: logits.log_softmax(0)[:, None] * _scores(logits),
            "The weight of an action is its probability π(a), not the logarithm of it.",
        ),
        Mistake(
            "scores weighted by π twice",
            lambda logits: (logits.softmax(0) ** 2)[:, None] * _scores(logits),
            "∇ log π has no factor π in it any more: one weight π(a) is all there is.",
        ),
        Mistake(
            "the scores of probabilities taken for logits",
            lambda logits: logits.softmax(0)[:, None] * _scores(logits.softmax(0)),
            "`score_function` takes logits and applies the softmax itself; π is only the weight.",
        ),
        Mistake(
            "π on the diagonal alone, the one-hot halves of the scores",
            lambda logits: logits.softmax(0).diag(),
            "Each score is one-hot *minus π*; the second halves are missing.",
        ),
        Mistake(
            "minus π(a)π alone, without the one-hot halves",
            lambda logits: -logits.softmax(0).outer(logits.softmax(0)),
            "Each score is *one-hot* minus π; the first halves are missing.",
        ),
        Mistake(
            "one number for each action in place of a row",
            lambda logits: (logits.softmax(0)[:, None] * _scores(logits)).diag(),
            "A score has an entry for each logit, and there is one score for each action: (V, V).",
        ),
        Mistake(
            "a softmax that overflows",
            _overflowing,
            "The exponential of 1000 is infinite: torch's softmax subtracts the largest logit "
            "first, which changes nothing else.",
            telling=1,  # the case that overflows
        ),
    ),
    alternatives=(_by_loop, _by_autograd, _by_outer_product),
    hints=(
        "You have `score_function(logits, action)` from lesson 02. What is one row made of?",
        "Stack the scores of all V actions, one a row, and multiply each row by the probability "
        "of its action, which has to be a column for that.",
        "In two lines:\n\n"
        "    scores = torch.stack([score_function(logits, a) for a in range(...)])  # (V, V)\n"
        "    return logits.softmax(dim=-1)[:, None] * ...",
    ),
)
