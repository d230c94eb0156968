"""What is found out about one answer, for programs: what kind it is, why, and on which case.

A mark says what an answer earned. A finding tells those apart that earn the same nothing: who wrote
nothing, whose cell does not parse, whose function raises, and whose is wrong in a way that has a
name or has none. Reports of a whole class are made of findings.
"""

import hashlib
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from torch import Tensor

from rlcourse.checks.asking.calling import Failure, Outcome
from rlcourse.checks.asking.case import Case
from rlcourse.checks.exercise import Exercise
from rlcourse.checks.judging import testing
from rlcourse.checks.telling.result import Result
from rlcourse.grading.running.steps import ENDINGS, IMPORTED, MANY_THREADS

RIGHT, NAMED, UNNAMED, RAISES = "right", "named", "unnamed", "raises"
SYNTAX, BLANK, UNREAD = "syntax error", "blank", "unread"
STATES = (
    *(RIGHT, NAMED, UNNAMED, RAISES, SYNTAX, BLANK, IMPORTED, UNREAD),
    *(*ENDINGS, MANY_THREADS),  # an answer that was ended: as its submission's status says
)
PARSING = ("SyntaxError", "IndentationError", "TabError")
DIGITS = 4  # of a number, by which answers that are the same are told


@dataclass(frozen=True)
class Finding:
    """One answer. ``state`` is one of ``STATES``:

    ``right``; ``named``, a declared mistake; ``unnamed``, other values than the right ones;
    ``raises``, in most of the cases that fail; ``syntax error``; ``blank``, the stub or no function
    at all; ``imported``, the library's own; ``unread``, the submission could not be graded; or, of
    an answer that was ended, the status that its submission gets by it, such as ``timed out``.

    ``because`` lists wrong functions that it uses and that are to be fixed first, ``case`` the
    smallest failing one as (what, value), and ``outputs`` is the same for answers that gave the
    same on every case.
    """

    state: str
    sentences: tuple[str, ...] = ()
    heading: str = ""
    case: tuple[tuple[str, str], ...] = ()
    because: tuple[str, ...] = ()
    outputs: str = ""

    def as_json(self) -> dict:
        return {
            "state": self.state,
            "sentences": list(self.sentences),
            "heading": self.heading,
            "case": [list(row) for row in self.case],
            "because": list(self.because),
            "outputs": self.outputs,
        }

    @classmethod
    def from_json(cls, data: dict) -> "Finding":
        pairs = tuple((what, value) for what, value in data["case"])
        lists: Any = {name: tuple(data[name]) for name in ("sentences", "because")}
        words: Any = {name: data[name] for name in ("state", "heading", "outputs")}
        return cls(**words, **lists, case=pairs)


def find(
    telling: Result,
    right: bool,
    mistake: str | None,
    failing: int,
    raising: int,
    because: tuple[str, ...],
    ended: str,
    outputs: str,
) -> Finding:
    """The finding on an answer that was judged, by the verdict that its author is told.

    Args:
        telling: that verdict, on the visible cases or on the hidden ones.
        failing: number of cases on which the answer is not right.
        raising: number of those that end in an exception where a value is expected.
        ended: the status with which it was ended, such as ``timed out``; "" if it was not.
    """
    raises = raising > 0 and 2 * raising >= failing
    example = None if right or telling.unwritten or telling.borrowed else telling.example
    return Finding(
        _state(telling, right, bool(mistake), raises, ended),
        sentences=() if right and not telling.once else telling.sentences,
        heading=example.heading if example else "",
        case=tuple(example.lines()) if example else (),
        because=() if right else because,
        outputs="" if right else outputs,
    )


def _state(telling: Result, right: bool, named: bool, raises: bool, ended: str) -> str:
    if telling.borrowed:
        return IMPORTED
    if right:
        return RIGHT
    if telling.unwritten:
        return BLANK
    if named:
        return NAMED
    if ended:
        return ended
    return RAISES if raises else UNNAMED


def not_judged(error: Failure | None, ended: str, why: str) -> Finding:
    """The finding where there was no function to be judged; `error` is that of its cell."""
    if ended:
        state = ended
    elif error:
        state = SYNTAX if error.type in PARSING else RAISES
    else:
        state = BLANK
    return Finding(state, (why,))


def fingerprint(exercise: Exercise, cases: Sequence[Case], outcomes: Sequence[Outcome]) -> str:
    """The same for answers that gave the same on all cases, to a few digits, as nobody's code."""
    told = [testing.verdict(o) for o in outcomes] if exercise.suspects else outcomes
    sha = hashlib.sha256()
    for case, outcome in zip(cases, told, strict=True):
        for word in _words(case, outcome):
            sha.update(f"{word}\0".encode("utf-8", "replace"))
    return sha.hexdigest()[:16]


def _words(case: Case, outcome: Outcome) -> Iterator[str]:
    """What of an outcome is compared, in words."""
    if outcome.error:
        yield f"raises {outcome.error.type}"
        return
    gradients = {name: outcome.gradients.get(name) for name in case.compared}
    for part in (outcome.value, gradients, outcome.after, sorted(outcome.changed)):
        yield from _spelled(part)


def _spelled(value: Any) -> Iterator[str]:
    if isinstance(value, Tensor):
        yield f"{value.dtype} {tuple(value.shape)}"
        yield from map(_number, value.detach().flatten().tolist())
    elif isinstance(value, dict):
        for name in sorted(value, key=str):
            yield str(name)
            yield from _spelled(value[name])
    elif isinstance(value, list | tuple):
        yield f"{len(value)} of"
        for item in value:
            yield from _spelled(item)
    else:
        yield _number(value) if isinstance(value, float) else f"{type(value).__name__} {value}"


def _number(value: float) -> str:
    """To a few digits; 0 for what only rounding keeps from it."""
    if isinstance(value, float) and math.isfinite(value) and abs(value) < 1e-9:
        return "0"
    return f"{value:.{DIGITS}g}"
