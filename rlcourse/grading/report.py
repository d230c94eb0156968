"""The report of a run over a lesson's submissions: a table for people, JSON for machines."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields, replace
from types import MappingProxyType

from rlcourse.evaluation.tables import aligned
from rlcourse.grading.judging.finding import BLANK
from rlcourse.grading.names import LONGEST_NAME, one_line
from rlcourse.words import amount, counted


@dataclass(frozen=True)
class Row:
    """One submission. ``score`` is what programs graded, of ``possible`` points.

    ``needs_person`` is True while a person has something to grade or to look at: a written answer
    ``waits`` for points by hand, or there is something to ``review``, said in words. ``before`` is
    True when an earlier run had already graded it.
    """

    student: str
    status: str
    score: float
    possible: float
    needs_person: bool = False
    waits: bool = False
    review: str = ""
    exercises: dict[str, dict] = field(default_factory=dict)  # see ``judging.judge.Mark.as_row``
    questions: dict[str, dict] = field(default_factory=dict)  # what a person grades
    incidents: tuple[str, ...] = ()
    seconds: float = 0.0
    before: bool = False
    seconds_late: float = 0.0
    penalty: float = 0.0  # in points, for being late

    def with_waiting(self, waiting: Mapping[str, bool], review: str = "") -> "Row":
        """The same, with what waits for a person in the gradebook *now*: {cell: whether it has no
        points yet}. Other cells have points that a person should look at, because of `review` or
        because points by hand are older than the answer."""
        if older := [name.removeprefix("check_") for name, bare in waiting.items() if not bare]:
            review = review or f"points by hand are older than the answer: {', '.join(older)}"
        waits = any(waiting.values())
        return replace(self, waits=waits, review=review, needs_person=waits or bool(review))

    def as_json(self) -> dict:
        return asdict(self) | {"incidents": list(self.incidents)}

    @classmethod
    def from_json(cls, data: dict) -> "Row":
        known = {f.name: data[f.name] for f in fields(cls) if f.name in data}  # of older receipts
        return cls(**{**known, "incidents": tuple(data["incidents"])})


def _notes(row: Row) -> list[str]:
    """What the table adds in brackets."""
    notes = ["graded before"] if row.before else []
    marks = row.exercises.values()
    notes += ["left blank"] if marks and all(m.get("state") == BLANK for m in marks) else []
    notes += [_lateness(row)] if row.seconds_late > 0 else []
    notes += ["a written answer waits"] if row.waits else []
    return notes + ([f"to review: {row.review}"] if row.review else [])


def _lateness(row: Row) -> str:
    # Of what Canvas calls late it is not known by how much: it counts as late by a second.
    hours = f" by {row.seconds_late / 3600:.1f} h" if row.seconds_late > 1 else ""
    return f"late{hours}{f', penalty {amount(row.penalty)}' if row.penalty else ''}"


@dataclass(frozen=True)
class Report:
    """All submissions of a lesson, by student, and who of the class handed in nothing."""

    lesson: str
    rows: tuple[Row, ...]
    absent: tuple[str, ...] = ()

    def as_json(self) -> dict:
        rows = [row.as_json() for row in self.rows]
        return {"lesson": self.lesson, "submissions": rows, "absent": list(self.absent)}

    def described(self, names: Mapping[str, str] = MappingProxyType({})) -> str:
        """A table for people, with the `names` of students."""
        rows = [("student", "name" * bool(names), "  by program", "status")]
        for row in self.rows:
            points = f"{f'{row.score:.2f} / {row.possible:g}':>12}"
            told = "; ".join(row.incidents) or row.status
            note = f"   [{', '.join(notes)}]" if (notes := _notes(row)) else ""
            called = one_line(names.get(row.student, ""), LONGEST_NAME)
            rows.append((row.student, called, points, f"{told}{note}"))
        counts = Counter(row.status for row in self.rows)
        summary = ", ".join(f"{count} {status}" for status, count in counts.most_common())
        said = f"{counted(len(self.rows), 'submission')} of {self.lesson}: {summary}"
        lines = [aligned(rows), said]
        if self.absent:
            absent = (f"{s} ({names[s]})" if names.get(s) else s for s in self.absent)
            lines.append(f"nothing from {len(self.absent)}: {', '.join(absent)}")
        return "\n".join(lines)
