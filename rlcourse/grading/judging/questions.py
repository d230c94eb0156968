"""The questions to a submission about one function, and how its answers are reassembled.

The side that answers gets arguments and nothing else: not what is special about a case, nor which
of the arguments count as constant, nor whether it should raise. The gradient is asked for every
floating tensor alike. The visible cases and the hidden ones come in an order that the course's
secret decides, and some come twice: whether a function is repeatable is seen here, not asked.
"""

import random
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from rlcourse.checks.asking.calling import Outcome, repeats
from rlcourse.checks.asking.case import Case
from rlcourse.checks.asking.specs import Spec
from rlcourse.grading.running.answers import LATE, LOST

REPEATED = 2  # cases of each half that come twice


@dataclass(frozen=True)
class Questions:
    """``order[k]`` is the case that question k asks; later ones of the same case are repeats."""

    cases: tuple[Case, ...]
    order: tuple[int, ...]

    @classmethod
    def draw(cls, halves: tuple[tuple[Case, ...], ...], seed: int) -> "Questions":
        """The cases of all halves, each half with a few that are asked twice."""
        chance = random.Random(seed)
        cases: list[Case] = []
        again: list[int] = []
        for half in halves:
            own = list(range(len(cases), len(cases) + len(half)))
            cases += half
            again += _worth_repeating(cases, own, chance)[:REPEATED]
        first = list(range(len(cases)))
        chance.shuffle(first)
        chance.shuffle(again)
        return cls(tuple(cases), (*first, *again))

    def places(self, first: int) -> list[int]:
        """The places of the questions whose cases come after the first `first`."""
        return [k for k, i in enumerate(self.order) if i >= first]

    def asked(self) -> list[Case]:
        return [self.cases[i].question() for i in self.order]

    def collate(self, answers: tuple[Outcome, ...]) -> list[Outcome]:
        """An outcome for every case, in their own order. ``ValueError`` for malformed ones."""
        found: dict[int, Outcome] = {}
        for i, answer in zip(self.order, answers, strict=True):
            _verify_gradients(self.cases[i], answer)
            if i not in found:
                found[i] = replace(answer, repeatable=None)
            elif not (found[i].error or _went_unanswered(answer)):
                same = not answer.error and repeats(found[i].value, answer.value)
                found[i] = replace(found[i], repeatable=same)
        return [found[i] for i in range(len(self.cases))]


def _went_unanswered(answer: Outcome) -> bool:
    return answer.error is not None and answer.error.type in (LATE.type, LOST.type)


def _worth_repeating(cases: list[Case], own: list[int], chance: random.Random) -> list[int]:
    """Cases in the order in which they should be repeated: where chance is at work, first."""
    chance.shuffle(own := list(own))
    return sorted(own, key=lambda i: not any(map(_draws, cases[i].arguments.values())))


def _draws(argument) -> bool:
    return isinstance(argument, Spec) and argument.kind.endswith("generator")


def _verify_gradients(case: Case, outcome: Outcome) -> None:
    for name, gradient in outcome.gradients.items():
        argument = case.arguments.get(name)
        if gradient is None:
            continue
        if not isinstance(gradient, Tensor) or not isinstance(argument, Tensor):
            raise ValueError("a gradient of what has none")
        if gradient.shape != argument.shape or not torch.is_floating_point(gradient):
            raise ValueError("a gradient of another shape than its argument")
