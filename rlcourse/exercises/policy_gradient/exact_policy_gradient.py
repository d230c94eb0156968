"""The exact policy gradient of a softmax bandit."""

from collections.abc import Iterator
from functools import partial

import torch

from rlcourse.algorithms.policy_gradient import (
    exact_policy_gradient,
    score_function,
)
from rlcourse.checks.calling import Case
from rlcourse.checks.cases import CaseSampler, tensor
from rlcourse.checks.exercise import Exercise, Mistake
from rlcourse.checks.sketch import Sketch
from rlcourse.exercises.policy_gradient.score_function import UNNORMALIZED, WORKED


def _exact_cases(draw: CaseSampler) -> Iterator[Case]:
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


def _exact_by_jacobian(logits, rewards):
    probs = logits.softmax(0)
    return (torch.diag(probs) - torch.outer(probs, probs)) @ rewards


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


_edit = Sketch(line_by_line, scores).edit
_summed = partial(_edit, "what is summed", "probs * (rewards - expected)")


EXERCISE = Exercise(
    reference=exact_policy_gradient,
    lesson="02_policy_gradient",
    section="The exact gradient, once",
    points=3,
    difficulty=2,
    minutes=15,
    cases=_exact_cases,
    oracle=_exact_by_autograd,
    mistakes=(
        Mistake(
            "π ⊙ R, without subtracting the expected reward",
            _edit("the expected reward", "(rewards - expected)", "rewards"),
            "Probabilities sum to 1, so one action can only gain what others lose: the entries of "
            "this gradient sum to 0.",
        ),
        Mistake(
            "the gradient with its sign turned",
            _edit("the sign", "return gradient", "return -gradient"),
            "This is the gradient of the expected reward, which is to grow; a loss would be its "
            "negative.",
        ),
        Mistake(
            "R − π·R, not weighted by π",
            _edit("the weights", "probs * (rewards - expected)", "rewards - expected"),
            "A logit moves the expectation in proportion to its action's probability.",
        ),
        Mistake(
            "π ⊙ (R − the plain mean of R)",
            _edit("the expected reward", "probs @ rewards", "rewards.mean()"),
            "What an action must beat is the reward that the policy expects, π·R, not the mean "
            "over actions that it may never take.",
        ),
        Mistake(
            "the gradient with respect to the probabilities",
            _edit("what is differentiated", "probs * (rewards - expected)", "rewards.clone()"),
            "E[R] = π·R has gradient R by π, but the parameters are the logits behind π.",
        ),
        Mistake(
            "π(1 − π) ⊙ R, the diagonal of the softmax's Jacobian",
            _edit(
                "what is differentiated",
                "probs * (rewards - expected)",
                "probs * (1 - probs) * rewards",
            ),
            "A logit changes the probabilities of all actions, not of its own alone: the "
            "Jacobian's off-diagonal entries −π(a)π(b) count too.",
        ),
        Mistake(
            "the formula with logits in the place of probabilities",
            _edit("the softmax", "logits.softmax(0)", "logits"),
            "Logits are not probabilities: take their softmax first.",
        ),
        Mistake(
            "exponentials that are not divided by their sum",
            _edit("the softmax", "logits.softmax(0)", "logits.exp()"),
            "e to a logit is a probability only if the logits happen to be log-probabilities: "
            "divide by the sum, or call softmax.",
        ),
        Mistake(
            "the score of the best action times its reward",
            _edit(
                "the weights",
                "probs * (rewards - expected)",
                "rewards.max() * score_function(logits, rewards.argmax())",
            ),
            "An expectation runs over all actions, each with its probability.",
        ),
        Mistake(
            "the sum of R ∇ log π over the actions, not weighted by π",
            _edit("the weights", "probs * (rewards - expected)", "rewards @ scores(logits)"),
            "Without sampling nothing weights the actions by how often they are taken: multiply "
            "each term by π(a).",
        ),
        Mistake(
            "the gradient divided by the number of actions",
            _edit("the average", "return gradient", "return gradient / len(logits)"),
            "An expectation is a sum weighted by π; the weights sum to 1 already, there is "
            "nothing to divide by.",
        ),
        Mistake(
            "scores summed over their components, not over the actions",
            _summed("scores(logits) @ (probs * rewards)"),
            "Row a is the score of action a, and the expectation runs over a: `(π * rewards) @ "
            "scores`, not `scores @ (π * rewards)`.",
        ),
        Mistake(
            "each action's own score weighed by π, and then by its reward",
            _summed("rewards * (scores(logits) @ probs)"),
            "Row a is the score of action a: weigh the *rows* by π(a) R(a) and add them up.",
        ),
        Mistake(
            "an expected score from the wrong side, without rewards",
            _summed("scores(logits) @ probs"),
            "With the rows weighed, `π @ scores`, this would be zero: it is the rewards that tell "
            "the actions apart.",
        ),
    ),
    alternatives=(_exact_by_autograd, _exact_by_jacobian, _exact_by_scores, line_by_line),
    hints=(
        "E[R] = Σ π(a) R(a). Which entries of π change when one logit moves?",
        "∇E[R] = Σ π(a) R(a) ∇ log π(a), and ∇ log π(a) is one-hot minus π. Collect what stands "
        "at one logit: its own term, minus its probability times the expected reward.",
        "With the expected reward `probs @ rewards`:\n\n"
        "    probs = logits.softmax(dim=-1)\n"
        "    expected_reward = ...\n"
        "    return probs * (rewards - ...)",
    ),
)
