"""How often a reward model is right."""

from collections.abc import Iterator

import torch
from torch import Tensor

from rlcourse.algorithms.reward_models import reward_accuracy
from rlcourse.checks.calling import Case
from rlcourse.checks.cases import CaseSampler, tensor
from rlcourse.checks.exercise import Exercise, Mistake


def _accuracy_cases(draw: CaseSampler) -> Iterator[Case]:
    def case(label: str, chosen: Tensor, rejected: Tensor) -> Case:
        """In float32, as a model gives rewards; then a share needs no thought of precision."""
        return Case(label, {"chosen": chosen.float(), "rejected": rejected.float()})

    worked = tensor([2.0, 0.1, -1.0, 3.0]), tensor([1.0, 0.5, -2.0, 0.0])
    yield case("worked: three of four", *worked)
    yield case("ties", tensor([1.0, 1.0, 0.0, 2.0]), tensor([1.0, 0.0, 0.0, 1.0]))
    yield case("all equal", torch.zeros(3), torch.zeros(3))
    yield case("one wrong by far", tensor([1.0, 1.1, -50.0]), tensor([0.9, 1.0, 2.0]))
    yield case("all negative", -tensor([1.0, 2.0, 3.0, 4.0]), -tensor([2.0, 1.5, 4.0, 5.0]))
    for n in (1, draw.size(5, 9), draw.size(11, 15)):
        yield case(f"{n} random pairs", draw.normal(n), draw.normal(n))


def _half_ties(chosen, rejected):
    return reward_accuracy(chosen, rejected) + 0.5 * (chosen == rejected).to(chosen.dtype).mean()


EXERCISE = Exercise(
    reference=reward_accuracy,
    lesson="08_reward_models",
    section="Is it any good?",
    points=1,
    difficulty=1,
    minutes=3,
    cases=_accuracy_cases,
    mistakes=(
        Mistake(
            "a share in which ties count as right",
            lambda chosen, rejected: (chosen >= rejected).to(chosen.dtype).mean(),
            "A model that gives everything the same reward knows nothing, and would score 1.",
            telling=2,
        ),
        Mistake(
            "a share in which ties count half",
            _half_ties,
            "Sensible, too, but not what is asked: a tie is not the right order.",
            telling=2,
        ),
        Mistake(
            "the share of wrong orders",
            lambda chosen, rejected: (chosen < rejected).to(chosen.dtype).mean(),
            "Right is where the chosen answer has the larger reward.",
        ),
        Mistake(
            "the number of right orders",
            lambda chosen, rejected: (chosen > rejected).to(chosen.dtype).sum(),
            "Divide by the number of pairs: the mean of zeros and ones is a share.",
        ),
        Mistake(
            "the mean gap",
            lambda chosen, rejected: (chosen - rejected).mean(),
            "A single large gap would outweigh many wrong orders: count orders.",
        ),
        Mistake(
            "the mean probability of the right order",
            lambda chosen, rejected: (chosen - rejected).sigmoid().mean(),
            "Accuracy counts decisions; the probability says how sure they were.",
        ),
        Mistake(
            "the share of chosen answers with a positive reward",
            lambda chosen, rejected: (chosen > 0).to(chosen.dtype).mean(),
            "A reward has no zero of its own: compare the two of a pair.",
        ),
        Mistake(
            "a comparison of the mean rewards",
            lambda chosen, rejected: (chosen.mean() > rejected.mean()).to(chosen.dtype),
            "Each pair is one decision, right or wrong.",
        ),
        Mistake(
            "every chosen answer against every rejected one",
            lambda chosen, rejected: (chosen[:, None] > rejected).to(chosen.dtype).mean(),
            "Rewards of different prompts cannot be compared: row i meets row i only.",
        ),
        Mistake(
            "one decision a pair, without the mean",
            lambda chosen, rejected: (chosen > rejected).to(chosen.dtype),
            "One number is asked for: the share.",
        ),
        Mistake(
            "a balance from −1 to 1",
            lambda chosen, rejected: (chosen - rejected).sign().mean(),
            "That is right orders minus wrong ones; the share of right ones is asked for.",
        ),
    ),
    alternatives=(
        lambda chosen, rejected: ((chosen - rejected).sign() == 1).to(chosen.dtype).mean(),
        lambda chosen, rejected: chosen.new_tensor(
            sum(bool(a > b) for a, b in zip(chosen, rejected, strict=True)) / len(chosen)
        ),
    ),
    hints=(
        "In how many pairs is the chosen answer's reward the larger one?",
        "A comparison gives True and False; as floats they are 1 and 0, and their mean is a share.",
        "One line:\n\n    return (... > ...).float().mean()",
    ),
)
