"""What an exercise is: everything that is known about right and wrong answers to one function.

An exercise needs no right numbers: they come from the reference, which is the function that the
trainer runs. Two files in the folder of its lesson declare it, both named after the function. The
page, ``masked_mean.md``, has the words, as ``rlcourse.courses.exercise_page`` shows:
points, hints, and the mistakes that students make. The module, ``masked_mean.py``, has the code,
and imports what it is written with from ``rlcourse.checks.declaring``::

    def cases(draw):
        yield Case("worked in the lesson", {"x": tensor([1.0, 2.0]), "mask": tensor([1, 0])})
        for label, logprobs, mask in draw.batches():     # padding, empty rows, N = T, float32 …
            yield Case(label, {"x": logprobs, "mask": mask})

    def line_by_line(x, mask):           # a right answer, as a student would write it
        total = (x * mask).sum()
        return total / mask.sum()

    sketch = Sketch(line_by_line)        # what the page's edits change
    alternatives = (loop_version, einsum_version)        # other right answers

and, where the exercise needs them: ``observe``, the statistic of a random result; ``oracle``, the
same value by another exact route; ``suspects``, what tests that students write are tried on; and
functions that the page names as mistakes, with the reference's parameters.

Then ``rlcourse prove masked_mean`` shows whether every mistake is rejected *and named as itself*,
every alternative passes, the stub fails, and the files say all they should, on fresh seeds; with
``--pairs 40`` whether two and three mistakes at once are named rightly or not at all; and with
``--mutants 40`` whether random changes of the right answers are rejected, none named falsely.

Rules of thumb:

- A mistake's name completes "Your numbers are those of …" and states the effect, which is all that
  the numbers show. Idioms that have it are listed as examples, in the name after a colon or in the
  diagnosis in brackets: the student may have written another one. Code that looks alike and should
  not get the name goes onto the page as a ``neighbor``.
- Its diagnosis is one sentence that teaches why, not what to type. Take
  mistakes from real code; the creative wrong student gets the gradient wrong and the value right,
  is right on square shapes, on 0/1 rewards, without padding.
- A mistake that no case tells from the reference, or two that no case tells apart, fail the proof:
  add the case that does, with a label that says what is special about it.
- Wherever the reference compares, a case is at equality and shows it, and for ``==`` between
  floats another one is close to it; if none can, ``boundaries`` in the module says why. A parameter
  that may be any ``Iterable`` is an iterator in some case.
- An argument that is an object (policy, optimizer, generator) is in a case as a ``Spec``; what
  the call leaves in it (parameters) is compared like a result.
- A random function names a statistic of its result in ``observe`` and gives its cases an ``atol``.
- Implementations stay small: the reference with one thing wrong.
- Options of one decision exclude each other. Where a function draws or changes an argument, its
  edits stand above all decisions and are not put together.
"""

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from typing import Any

from torch import Tensor

from rlcourse.checks.asking.case import Case
from rlcourse.checks.judging.case_sampler import CaseSampler
from rlcourse.checks.judging.contest import Contest
from rlcourse.checks.judging.testing import Suspects

# The beginnings of labels of cases that test care and not the idea, in every exercise.
EDGES = ("an empty row", "every row empty", "a float mask", "a mask of integers", "float32")


# A docstring that says of what dtype the result is, "(P,) → (P, K), float64", is taken at its word.
PROMISED_DTYPE = r"→[^.:;]*\bfloat\d\d\b"


@dataclass(frozen=True)
class Mistake:
    """A known wrong implementation: how it is called, what it computes, why it is wrong.

    ``atol`` is how near an answer must come to be taken for it, where students' versions of the
    mistake differ in a small constant, such as the ε in a denominator. ``telling`` is on how many
    cases an answer must have its numbers: fewer than three are a coincidence, unless the mistake
    shows on fewer by its nature, as a division by zero in an empty row does.
    """

    name: str
    implementation: Callable
    diagnosis: str
    atol: float | None = None
    telling: int = 3
    paraphrases: tuple[Callable, ...] = ()  # that the proof wants called by this name
    neighbors: tuple[Callable, ...] = ()  # and that it does not


@dataclass(frozen=True, kw_only=True)
class Exercise:
    """One function that students write, and everything that is known about right and wrong."""

    reference: Callable
    lesson: str  # "02_policy_gradient"
    section: str  # heading in the lesson that explains it
    points: float
    cases: Callable[[CaseSampler], Iterable[Case]]
    mistakes: tuple[Mistake, ...]
    alternatives: tuple[Callable, ...]
    hints: tuple[str, str, str]  # a nudge, the idea, nearly the code
    difficulty: int  # 1 to 5
    minutes: int
    differentiable: tuple[str, ...] = ()  # arguments whose gradient is compared, where finite
    constants: tuple[str, ...] = ()  # float arguments that must get no gradient
    boundaries: tuple[tuple[str, str], ...] = ()  # (comparison that no case shows, why)
    derived: tuple[str, ...] = ()  # places of the result, "[1]", that are judged after the others
    observe: Callable[[Case, Any], Any] | None = None  # statistic of a random result
    oracle: Callable | None = None  # same value by an independent exact route, for the proof
    suspects: Suspects | None = None  # what the tests that a student writes here are tried on
    contest: Contest | None = None  # what the trainer that a student writes here is tried on
    name: str = field(default="")

    def __post_init__(self):
        if not self.name:
            object.__setattr__(self, "name", self.reference.__name__)

    def draw_cases(self, seed: int | None = None, hidden: bool = False) -> tuple[Case, ...]:
        """The worked cases and random ones: fresh with no seed, the same for the same seed.

        The first case comes once more with constants that require gradient and must get none.
        """
        tracked = bool(self.differentiable or self.constants)
        exact = bool(re.search(PROMISED_DTYPE, self.reference.__doc__ or ""))
        drawn = [
            replace(
                case,
                differentiable=case.differentiable or _present(self.differentiable, case),
                tracked=tracked,
                exact_dtype=exact or case.exact_dtype,
            )
            for case in self.cases(CaseSampler(seed, hidden))
        ]
        if constants := _present(self.constants, drawn[0]):
            names = " and ".join(constants)
            drawn.append(replace(drawn[0], label=f"{names} with a graph", constants=constants))
        return tuple(replace(case, edge=_is_at_the_edge(case)) for case in drawn)


def _is_at_the_edge(case: Case) -> bool:
    kind = case.label.partition(",")[0]
    return case.edge or case.raises or bool(case.constants) or kind in EDGES


def _present(names: tuple[str, ...], case: Case) -> tuple[str, ...]:
    """Those that the case has. At infinity right functions may well differ in their gradients."""
    given = {n: case.arguments[n] for n in names if isinstance(case.arguments.get(n), Tensor)}
    return () if any(t.isinf().any() for t in given.values()) else tuple(given)
