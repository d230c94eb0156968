"""Bradley and Terry's model of a comparison."""

from collections.abc import Iterator

import torch
import torch.nn.functional as F
from torch import Tensor

from rlcourse.algorithms.reward_models import preference_probability
from rlcourse.checks.calling import Case
from rlcourse.checks.cases import CaseSampler, tensor
from rlcourse.checks.exercise import Exercise, Mistake


def _probability_cases(draw: CaseSampler) -> Iterator[Case]:
    def case(label: str, reward_a: Tensor, reward_b: Tensor) -> Case:
        return Case(label, {"reward_a": reward_a, "reward_b": reward_b})

    yield case("worked: equal rewards", tensor([2.0]), tensor([2.0]))
    yield case("worked: a gap of 1, both ways", tensor([1.0, 0.0]), tensor([0.0, 1.0]))
    n = draw.size(3, 5)
    a, b = draw.normal(n), draw.normal(n)
    yield case("random rewards", a, b)
    yield case("the same gaps, 50 higher", a + 50, b + 50)
    yield case("both negative", -draw.uniform(4, low=1, high=3), -draw.uniform(4, low=1, high=3))
    yield case("rewards of ±1000", tensor([1000.0, -1000.0]), tensor([999.0, -1001.0]))
    yield case("all against all", draw.normal(3, 1), draw.normal(1, 4))
    yield case("two scalars", draw.normal(), draw.normal())
    yield case("float32", draw.normal(4).float(), draw.normal(4).float())


def by_exponentials(reward_a, reward_b):
    return reward_a.exp() / (reward_a.exp() + reward_b.exp())


EXERCISE = Exercise(
    reference=preference_probability,
    lesson="08_reward_models",
    section="From comparisons to rewards",
    points=1,
    difficulty=1,
    minutes=5,
    differentiable=("reward_a", "reward_b"),
    cases=_probability_cases,
    mistakes=(
        Mistake(
            "the probability that b is preferred",
            lambda reward_a, reward_b: torch.sigmoid(reward_b - reward_a),
            "The larger a's reward, the likelier that a wins: a minus b.",
        ),
        Mistake(
            "a's share of the two rewards, a / (a + b)",
            lambda reward_a, reward_b: reward_a / (reward_a + reward_b),
            "That is Bradley and Terry's formula for *strengths*, which are positive; a reward is "
            "the logarithm of a strength.",
        ),
        Mistake(
            "a quotient of exponentials that overflows",
            by_exponentials,
            "The formula is right, but exp(1000) is infinite: divided by the numerator it becomes "
            "the sigmoid of the difference.",
            telling=1,
        ),
        Mistake(
            "the difference itself",
            lambda reward_a, reward_b: reward_a - reward_b,
            "A difference can be any number; the sigmoid makes a probability of it.",
        ),
        Mistake(
            "certainty: 1 for the larger, 0 for the smaller",
            lambda reward_a, reward_b: (reward_a > reward_b).to(reward_a.dtype),
            "People disagree, the more the closer two answers are: the model is a probability.",
        ),
        Mistake(
            "the log-probability",
            lambda reward_a, reward_b: F.logsigmoid(reward_a - reward_b),
            "The probability itself is asked for: no logarithm yet.",
        ),
        Mistake(
            "the sigmoid of a's reward alone",
            lambda reward_a, reward_b: torch.sigmoid(reward_a) + 0 * reward_b,
            "A reward has no zero of its own: only differences mean anything.",
        ),
        Mistake(
            "a quotient of two sigmoids",
            lambda reward_a, reward_b: (
                reward_a.sigmoid() / (reward_a.sigmoid() + reward_b.sigmoid())
            ),
            "The sigmoid belongs around the difference; the strengths are exponentials.",
        ),
        Mistake(
            "tanh of the difference",
            lambda reward_a, reward_b: torch.tanh(reward_a - reward_b),
            "tanh runs from −1 to 1; a probability from 0 to 1, and equal rewards give ½.",
        ),
        Mistake(
            "a probability that no gradient leaves",
            lambda reward_a, reward_b: torch.sigmoid(reward_a - reward_b).detach(),
            "The rewards are learned through this number.",
        ),
    ),
    alternatives=(
        lambda reward_a, reward_b: 1 / (1 + torch.exp(reward_b - reward_a)),
        lambda reward_a, reward_b: torch.stack(
            torch.broadcast_tensors(reward_a, reward_b), dim=-1
        ).softmax(dim=-1)[..., 0],
    ),
    hints=(
        "Equal rewards must give ½, and adding 50 to both must change nothing.",
        "exp(a) / (exp(a) + exp(b)): divide numerator and denominator by exp(a).",
        "One line:\n\n    return torch.sigmoid(... - ...)",
    ),
)
