"""What a check returns: a score, and a message that a student reads."""

from dataclasses import dataclass, replace
from typing import Any

from rlcourse.checks.calling import Case
from rlcourse.checks.comparing import Difference
from rlcourse.checks.show import show, show_pair

SHOWN = ("value", "shape", "gradient", "leak", "after")  # differences with two sides to print
MIME_TYPE = "application/vnd.rlcourse.check+json"


def counted(number: float, noun: str) -> str:
    """ "1 point", "2 points"."""
    return f"{number:g} {noun}" + ("" if number == 1 else "s")


@dataclass(frozen=True)
class Example:
    """The smallest failing case, and what differs on it."""

    case: Case
    differences: tuple[Difference, ...]

    @classmethod
    def of(cls, failed, at: int | None) -> "Example | None":
        """From a `FailedCheck`: case `at`, or the smallest; none where only the type is wrong."""
        i = failed.smallest if at is None else at
        found = tuple(failed.differences[i])
        error = failed.outcomes[i].error
        if any(d.kind in ("type", "structure", "dtype") for d in found) or (
            error and not error.line
        ):
            return None
        return cls(failed.cases[i], found)

    def lines(self, without: Difference | None = None) -> list[tuple[str, str]]:
        """(name, value) of the arguments, then of what was expected and what came.

        No gradient in numbers where the value is wrong: it is wrong as a consequence.
        """
        consequent = any(d.kind in ("value", "shape") for d in self.differences)
        lines = [(name, show(value)) for name, value in self.case.arguments.items()]
        for difference in self.differences:
            if consequent and difference.kind == "gradient":
                continue
            if difference is not without and difference.kind in SHOWN:
                wanted, got = show_pair(difference.expected, difference.actual)
                if difference.kind == "leak":
                    wanted = "none"
                if difference.kind == "shape":
                    shapes = difference.expected.shape, difference.actual.shape
                    wanted, got = (
                        f"{text}, shape {tuple(shape)}"
                        for text, shape in zip((wanted, got), shapes, strict=True)
                    )
                what = self._what(difference)
                lines += [(f"{what}expected", wanted), (f"{what}yours", got)]
        return lines

    @staticmethod
    def _what(difference: Difference) -> str:
        if difference.kind in ("gradient", "leak"):
            return f"gradient of {difference.name}, "
        return f"{difference.name}, " if difference.name else ""


@dataclass(frozen=True)
class Result:
    """The verdict of a check. In Jupyter it shows itself; ``message`` is the same in plain text."""

    exercise: str
    lesson: str
    section: str
    passed: bool
    score: float  # in [0, 1]
    max_points: float
    agreeing: int
    cases: int
    minutes: int
    first_hint: str
    unwritten: bool = False
    edges: tuple[str, ...] = ()  # the failing cases in words, if all of them lie at the edge
    mistake: str | None = None  # name of the declared mistake that reproduces the answer
    sentences: tuple[str, ...] = ()
    example: Example | None = None
    printed: str = ""
    warning: str = ""

    @property
    def points(self) -> float:
        return float(self.score * self.max_points)

    @property
    def headline(self) -> str:
        if self.unwritten:
            return f"✗ {self.exercise} is not written yet"
        if self.edges:
            many = "some things are" if len(self.edges) > 1 else "one thing is"
            named = ", ".join(f"“{label}”" for label in self.edges[:3])
            return f"≈ {self.exercise}   right; at the edge {many} missing: {named}"
        sign = "✓" if self.passed else "✗"
        earned = f" · {counted(self.points, 'point')}" if self.passed and self.max_points else ""
        return f"{sign} {self.exercise}   {self.agreeing} of {self.cases} cases agree{earned}"

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

    def blamed_on(self, other: "Result") -> "Result":
        """The same result, which first says that another exercise's function is the one to mend."""
        state = "is not written yet" if other.unwritten else "fails its own check"
        first = f"{self.exercise} uses your {other.exercise}, which {state}: "
        first += f"begin there, check({other.exercise})."
        if self.mistake is None:  # the rest would describe the other function's fault
            return replace(self, unwritten=False, sentences=(first,), example=None)
        return replace(self, sentences=(first, *self.sentences))

    @property
    def footer(self) -> str:
        number = self.lesson.partition("_")[0]
        return f"hint({self.exercise}) · lesson {number}, “{self.section}”"

    @property
    def notes(self) -> tuple[str, ...]:
        """What the function said while it was called."""
        notes = [f"Your code warns: {self.warning}"] if self.warning else []
        return (*notes, *([f"It printed: {self.printed.strip()}"] if self.printed.strip() else []))

    @property
    def message(self) -> str:
        lines = [self.headline, *(f"  {sentence}" for sentence in self.advice)]
        if self.example:
            lines.append(f"  Smallest case, “{self.example.case.label}”:")
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
        """What a tool reads out of a notebook's outputs."""
        return {
            "exercise": self.exercise,
            "passed": self.passed,
            "unwritten": self.unwritten,
            "score": self.score,
            "points": self.points,
            "max_points": self.max_points,
            "mistake": self.mistake,
            "message": self.message,
        }

    def _repr_html_(self) -> str:
        from rlcourse.checks.html import result_html

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
