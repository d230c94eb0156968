"""What a check returns: a score, and a message that a student reads."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from rlcourse.checks.asking.case import Case
from rlcourse.checks.exercise import Exercise
from rlcourse.checks.judging.comparing import Difference
from rlcourse.checks.judging.contest import Measured
from rlcourse.checks.telling.cutting import flat
from rlcourse.checks.telling.first_difference import FirstDifference
from rlcourse.checks.telling.places import Place
from rlcourse.checks.telling.show import LONGEST, shortened, show, show_pair
from rlcourse.words import counted

# Differences that have two sides to print.
SHOWN = ("value", "shape", "gradient", "leak", "after", "structure")
MOST_SHOWN = 3  # of these differences
MIME_TYPE = "application/vnd.rlcourse.check+json"


def right_once(names: Sequence[str]) -> str:
    """ "right, once `reinforce_loss` is"."""
    quoted = [f"`{name}`" for name in names]
    return f"right, once {' and '.join(quoted)} {'are' if len(quoted) > 1 else 'is'}"


@dataclass(frozen=True)
class Example:
    """The smallest failing case, and what differs on it."""

    case: Case
    differences: tuple[Difference, ...]
    smaller: bool = False  # it has been cut down, and its label may say too much
    observed: bool = False  # what is compared of the result are statistics, by name
    first_difference: FirstDifference | None = None  # where one of several steps went wrong

    @classmethod
    def of(cls, failed, at: int | None) -> "Example | None":
        """From a `FailedCheck`: case `at`, or the smallest one; none if only the type is wrong."""
        i = failed.smallest if at is None else at
        found = tuple(failed.differences[i])
        error = failed.outcomes[i].error
        if any(d.kind in ("type", "dtype") for d in found) or (error and not error.line):
            return None
        return cls(failed.cases[i], found, observed=failed.exercise.observe is not None)

    @property
    def heading(self) -> str:
        origin = "cut down from " if self.smaller else ""
        return f"Smallest case, {origin}“{self.case.label}”"

    def lines(self, without: Difference | None = None) -> list[tuple[str, str]]:
        """(name, value) of the arguments, then of the expected and the actual result.

        If the value is wrong, no gradient is shown in numbers: it is wrong as a consequence.
        """
        lines = [(name, show(value)) for name, value in flat(self.case.arguments).items()]
        lines = [(name, value) for name, value in lines if not _is_empty(value)]
        if self.first_difference:
            wanted, got = show_pair(self.first_difference.expected, self.first_difference.actual)
            what = self.first_difference.what
            return [*lines, (f"{what}, expected", wanted), (f"{what}, yours", got)]
        consequent = any(d.kind in ("value", "shape") for d in self.differences)
        told = [
            d
            for d in self.differences
            if d.kind in SHOWN and d is not without and not (consequent and d.kind == "gradient")
        ]
        # Two large tensors of one shape look alike.
        told = [d for d in told if len({text for _, text in self._sides(d)}) > 1] or told
        for difference in told[:MOST_SHOWN]:
            lines += self._sides(difference)
        if len(told) > MOST_SHOWN:
            lines.append(("…", f"{len(told) - MOST_SHOWN} more differ"))
        return lines

    def _sides(self, difference: Difference) -> list[tuple[str, str]]:
        """What was expected, and what was returned."""
        wanted, got = show_pair(difference.expected, difference.actual)
        if difference.kind == "leak":
            wanted = "none"
        if difference.kind == "shape":
            shapes = difference.expected.shape, difference.actual.shape
            wanted, got = (
                f"shape {tuple(shape)}" if self.observed else f"{text}, shape {tuple(shape)}"
                for text, shape in zip((wanted, got), shapes, strict=True)
            )
        what = self._what(difference)
        return [(f"{what}expected", wanted), (f"{what}yours", got)]

    def _what(self, difference: Difference) -> str:
        name = difference.name.replace(".[", "[")
        if difference.kind in ("gradient", "leak"):
            return f"gradient of {name}, "
        if self.observed and difference.kind == "value":
            return f"compared: {name}, "
        return f"{place_in_result(name)}, " if name else ""


def place_in_result(name: str) -> str:
    """A place in the result as Python would write it: "result[0]"."""
    return f"result{name}" if name.startswith("[") else name


def _is_empty(shown: str) -> bool:
    """Whether a reader would learn nothing from it: prompts without tokens."""
    return " tensor of shape (" in shown and shown.endswith(", 0)>")


@dataclass(frozen=True)
class Result:
    """The verdict of a check. Jupyter displays it; ``message`` is the same in plain text."""

    exercise: str
    lesson: str
    section: str
    passed: bool
    score: float  # in [0, 1]
    max_points: float
    agreeing: int
    cases: int
    minutes: int
    hints: tuple[str, ...]
    unwritten: bool = False
    borrowed: str = ""  # the library's own function that it is, or that it calls
    once: tuple[str, ...] = ()  # functions it builds on that are wrong; it is right with right ones
    edges: tuple[str, ...] = ()  # the failing cases in words, if all of them lie at the edge
    mistake: str | None = None  # name of the declared mistake that reproduces the answer
    half: str | None = (
        None  # of one that reproduces it on some failing cases, and not on the others
    )
    sentences: tuple[str, ...] = ()
    example: Example | None = None
    printed: str = ""
    warning: str = ""
    place: Place | None = None  # where it may be wrong; said once it has been tried
    told: str = ""  # what is said in place of how many cases agree
    measured: Measured | None = None  # of a contest: what the trained policy can do

    @classmethod
    def on(cls, exercise: Exercise, **found: Any) -> "Result":
        """The verdict on an answer to an exercise, with what was `found`."""
        return cls(
            exercise=exercise.name,
            lesson=exercise.lesson,
            section=exercise.section,
            max_points=float(exercise.points),
            minutes=exercise.minutes,
            hints=exercise.hints,
            **found,
        )

    @property
    def points(self) -> float:
        return float(self.score * self.max_points)

    @property
    def headline(self) -> str:
        if self.unwritten:
            return f"✗ {self.exercise} is not written yet"
        if self.borrowed == self.exercise:
            return f"✗ {self.exercise}   this is the library's own function: write yours"
        if self.borrowed:
            return f"✗ {self.exercise}   this calls the library's own {self.borrowed}: call yours"
        if self.edges:
            many = "some things are" if len(self.edges) > 1 else "one thing is"
            named = ", ".join(f"“{label}”" for label in self.edges[:3])
            return f"≈ {self.exercise}   right; at the edge {many} missing: {named}"
        partly = bool(self.measured) and 0 < self.score < 1
        sign = "✓" if self.passed else "≈" if partly else "✗"
        earned = f" · {counted(self.points, 'point')}" if self.passed and self.max_points else ""
        if partly:
            earned = f" · {self.points:.1f} of {counted(self.max_points, 'point')}"
        if self.once:
            return f"{sign} {self.exercise}   {right_once(self.once)}{earned}"
        counts = self.told or f"{self.agreeing} of {self.cases} cases agree"
        return f"{sign} {self.exercise}   {counts}{earned}"

    @property
    def advice(self) -> tuple[str, ...]:
        """What is wrong, and why."""
        if not self.unwritten:
            return self.sentences
        return (
            *self.sentences,
            "Put its body in place of `raise NotImplementedError`, run that cell, then this one. "
            f"About {self.minutes} minutes.",
        )

    def as_borrowed(self, name: str) -> "Result":
        """The verdict on an answer that takes the library's function `name`, of its own lesson."""
        said = (
            f"Points are for what you write: an answer that imports or calls the library's "
            f"`{name}` gets none, here and in grading.",
        )
        wiped = replace(self, passed=False, unwritten=False, score=0.0, edges=(), once=())
        return replace(wiped, borrowed=name, mistake=None, sentences=said, example=None)

    def blamed_on(self, other: str, state: str) -> "Result":
        """The same result, which first says that another exercise's function is the one to fix."""
        first = f"{self.exercise} uses your {other}, which {state}. Start there: check({other})."
        if self.mistake is None:  # the rest would describe the other function's fault
            return replace(self, unwritten=False, sentences=(first,), example=None)
        return replace(self, sentences=(first, *self.sentences))

    def with_right(self, others: Mapping[str, str]) -> "Result":
        """The result of a check with references in place of `others`, and a sentence that says so.

        `others` maps each name to what is wrong with it.
        """
        if self.unwritten:
            return self
        if self.passed:
            uses = " and ".join(f"your {name}, which {state}" for name, state in others.items())
            place = "the right one in its" if len(others) == 1 else "right ones in their"
            next_checks = " and ".join(f"check({name})" for name in others)
            said = f"It uses {uses}. With {place} place it is right: continue with {next_checks}."
            return replace(self, once=tuple(others), sentences=(said,))
        for_yours = "in place of yours, which"
        right = " and ".join(f"a right {name} {for_yours} {s}" for name, s in others.items())
        return replace(self, sentences=(*self.sentences, f"It was checked with {right}."))

    @property
    def state(self) -> str:
        """What the message says about a wrong function that another one builds on."""
        if self.borrowed:
            return "is the library's own"
        return "is not written yet" if self.unwritten else "fails its own check"

    @property
    def footer(self) -> str:
        number = self.lesson.partition("_")[0]
        return f"hint({self.exercise}) · lesson {number}, “{self.section}”"

    @property
    def notes(self) -> tuple[str, ...]:
        """What the function printed, and its warnings, while it was called."""
        printed = " ".join(self.printed.split())
        heard = (("Your code warns", self.warning), ("It printed", printed))
        return tuple(f"{what}: {shortened(said, LONGEST)}" for what, said in heard if said)

    @property
    def message(self) -> str:
        lines = [self.headline, *(f"  {sentence}" for sentence in self.advice)]
        if self.example:
            lines.append(f"  {self.example.heading}:")
            rows = self.example.lines()
            width = max((len(name) for name, _ in rows), default=0)
            lines += [f"    {name:<{width}}  {value}" for name, value in rows]
        lines += [f"  {note}" for note in self.notes]
        if not self.passed:
            lines.append(f"  {self.footer}")
        return "\n".join(lines)

    def __repr__(self) -> str:
        return self.message

    def as_json(self) -> dict[str, Any]:
        """What tools read from a notebook's outputs."""
        return {
            "exercise": self.exercise,
            "passed": self.passed,
            "unwritten": self.unwritten,
            "borrowed": self.borrowed,
            "once": list(self.once),
            "score": self.score,
            "points": self.points,
            "max_points": self.max_points,
            "mistake": self.mistake,
            "message": self.message,
        }

    def _repr_html_(self) -> str:
        from rlcourse.checks.telling.html import result_html

        return result_html(self)

    def _repr_mimebundle_(self, include=None, exclude=None) -> dict[str, Any]:
        return {
            "text/plain": self.message,
            "text/html": self._repr_html_(),
            MIME_TYPE: self.as_json(),
        }


class CheckFailed(Exception):
    """Raised in place of a failed result where only an exception counts: nbgrader's Validate."""

    def __init__(self, result: Result):
        super().__init__(result.message)
        self.result = result

    def _render_traceback_(self) -> list[str]:
        return self.result.message.splitlines()
