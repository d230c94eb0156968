"""An exercise without its right answer: recorded cases, and what is right and wrong on them.

The students' edition of the course (``rlcourse student-edition``) has these in place of exercises
whose lessons are not due. A file ``NAME.recorded`` is a zip archive: ``exercise.json`` has the
words of the exercise's page and the names of its mistakes, but no code of an answer; and each
drawing of the cases is a message of ``wire``, with the arguments, what the reference returned for
them, and what each declared mistake did. So a check still rejects and names, by the same
comparison. What needs more calls of a right answer is missing: two mistakes at once, and smaller
examples.

An answer that draws at random is judged by statistics of it, whose code is in ``observe``. Tests
that students write cannot be judged here at all, as they call right answers with arguments of their
own, and neither can a whole trainer.
"""

import io
import json
import random
import zipfile
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from functools import cache, cached_property
from importlib import import_module
from pathlib import Path
from typing import Any

from rlcourse.checks import wire
from rlcourse.checks.calling import Facts, Failure, Outcome
from rlcourse.checks.case import Case
from rlcourse.checks.exam import Exam
from rlcourse.checks.exercise import Exercise, Mistake
from rlcourse.checks.result import Result
from rlcourse.errors import UserError

SUFFIX = ".recorded"
WORDS = (
    *("name", "lesson", "section", "points", "hints", "difficulty", "minutes"),
    *("differentiable", "constants", "derived"),
)
LATER = (
    "In this edition of the course, this exercise is judged when you hand it in: to judge it takes "
    "more than recorded cases."
)


@dataclass(frozen=True)
class Drawing:
    """Cases, what the reference does on each, and each mistake (None: the same)."""

    cases: tuple[Case, ...]
    expected: list[Outcome]
    wrong: dict[str, list[Outcome | None]]


@dataclass(frozen=True, kw_only=True)
class Recorded(Exercise):
    """An exercise of which only recorded drawings are known; `drawings` are messages."""

    drawings: tuple[bytes, ...] = ()

    def draw_cases(self, seed: int | None = None, hidden: bool = False) -> tuple[Case, ...]:
        raise UserError(
            f"this is a students' edition of the course, without the right {self.name}: grade, "
            "build and prove with the instructor's installation"
        )

    def drawing(self, seed: int | None = None) -> Drawing:
        """One of them: the same for the same seed."""
        return _decoded(random.Random(seed).choice(self.drawings))


@cache
def _decoded(message: bytes) -> Drawing:
    found = wire.loads(message)
    return Drawing(tuple(found["cases"]), found["expected"], found["wrong"])


class RecordedExam(Exam):
    """One recorded drawing, and what is known about it."""

    def __init__(self, exercise: Recorded, seed: int | None = None, hidden: bool = False):
        self.drawing = exercise.drawing(seed) if exercise.drawings else Drawing((), [], {})
        super().__init__(exercise, hidden=hidden, cases=self.drawing.cases)

    @cached_property
    def expected(self) -> list[Outcome]:
        return self.drawing.expected

    def outcome_of(self, mistake: Mistake, i: int, repeat: bool = False) -> Outcome:
        known = self.drawing.wrong[mistake.name][i] or self.expected[i]
        return known if repeat else replace(known, repeatable=True)

    def judge(self, facts: Facts, outcomes: list[Outcome]) -> Result:
        if self.cases:
            return super().judge(facts, outcomes)
        return replace(self._result([], [], later=True), sentences=(LATER,))


def exam_of(exercise: Exercise, seed: int | None = None, hidden: bool = False) -> Exam:
    """An exam of an exercise, whichever way that is known."""
    kind: Any = RecordedExam if isinstance(exercise, Recorded) else Exam
    return kind(exercise, seed, hidden)


def record(exercise: Exercise, seeds: Iterable[int], observe: str = "") -> bytes:
    """The file of an exercise; `observe` is the text of a module with the function of that name."""
    words = {key: getattr(exercise, key) for key in WORDS}
    told = {
        **words,
        "function": f"{exercise.reference.__module__}.{exercise.reference.__name__}",
        "observe": observe,
        "mistakes": [
            {key: getattr(m, key) for key in ("name", "diagnosis", "atol", "telling")}
            for m in exercise.mistakes
        ],
    }
    drawings = (
        []
        if exercise.suspects or exercise.contest
        else [_drawing(exercise, seed) for seed in seeds]
    )
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr(zipfile.ZipInfo("exercise.json"), json.dumps(told, indent=1))
        for i, drawing in enumerate(drawings):
            archive.writestr(zipfile.ZipInfo(f"drawing-{i}"), drawing, zipfile.ZIP_DEFLATED)
    return made.getvalue()


def _drawing(exercise: Exercise, seed: int) -> bytes:
    exam = Exam(exercise, seed)
    expected = [_without_code(outcome) for outcome in exam.expected]
    right = [wire.dumps(outcome) for outcome in expected]

    def of(mistake: Mistake) -> list[Outcome | None]:
        found = [_without_code(exam.outcome_of(mistake, i, True)) for i in range(len(right))]
        return [
            None if wire.dumps(outcome) == same else outcome
            for outcome, same in zip(found, right, strict=True)
        ]

    wrong = {mistake.name: of(mistake) for mistake in exercise.mistakes}
    return wire.dumps({"cases": list(exam.cases), "expected": expected, "wrong": wrong})


def _without_code(outcome: Outcome) -> Outcome:
    """The outcome without lines of the implementation, which an error holds."""

    def bare(error: Failure) -> Failure:
        return Failure(error.type, error.message)

    return replace(
        outcome,
        error=outcome.error and bare(outcome.error),
        refused={name: bare(error) for name, error in outcome.refused.items()},
        warnings=(),
        printed="",
    )


def read(path: Path, **overridden: Any) -> Recorded:
    """The exercise in a file that ``record`` made; `overridden` are its course's own points."""
    try:
        with zipfile.ZipFile(path) as archive:
            told = json.loads(archive.read("exercise.json"))
            names = [name for name in archive.namelist() if name.startswith("drawing-")]
            drawings = tuple(map(archive.read, names))
    except (OSError, ValueError, KeyError, zipfile.BadZipFile) as error:
        raise UserError(f"{path} cannot be read ({error}): install the course again") from error
    home, _, name = told.pop("function").rpartition(".")
    observe, mistakes = told.pop("observe"), told.pop("mistakes")
    words = {key: tuple(value) if isinstance(value, list) else value for key, value in told.items()}
    return Recorded(
        **(words | overridden),
        reference=_function(home, name),
        observe=_observer(observe, path) if observe else None,
        mistakes=tuple(Mistake(implementation=_withheld, **about) for about in mistakes),
        cases=_withheld,
        alternatives=(),
        drawings=drawings,
    )


def _function(home: str, name: str) -> Callable:
    """The library's function, which is blank in this edition; tests that students write have none,
    as they stand with their exercises."""
    try:
        return getattr(import_module(home), name)
    except (ImportError, AttributeError):
        return _withheld


def _observer(text: str, path: Path) -> Callable:
    namespace: dict[str, Any] = {"__name__": f"rlcourse.recorded.{path.stem}"}
    exec(compile(text, str(path), "exec"), namespace)
    return namespace["observe"]


def _withheld(*args, **kwargs):
    raise UserError("this edition of the course does not have that function")
