"""Read what grading recorded of a lesson: nobody's code is run, imported or even parsed."""

import json
import re
from dataclasses import dataclass, field, fields
from pathlib import Path

from rlcourse.errors import UserError
from rlcourse.grading.books.gradebook import LARGEST_RECEIPT, Course, read_receipt
from rlcourse.grading.books.grades import read_grades
from rlcourse.grading.handing_in.submission import ELSEWHERE
from rlcourse.grading.judging.finding import BLANK
from rlcourse.grading.judging.secret import course_secret
from rlcourse.grading.report import Row

COMMENT = re.compile(r"#[^\n\"']*$", re.MULTILINE)  # one that holds no quote, so is no string's


@dataclass(frozen=True)
class Answer:
    """One student's answer to one exercise, as it was judged: what ``Mark.as_row`` has of it."""

    student: str
    exercise: str
    points: float
    possible: float
    state: str  # one of ``judging.finding.STATES``
    mistake: str | None = None
    sentences: tuple[str, ...] = ()
    heading: str = ""
    case: tuple[tuple[str, str], ...] = ()
    because: tuple[str, ...] = ()  # wrong functions that it uses: they are to be fixed first
    once: tuple[str, ...] = ()  # wrong functions that it uses, with right ones of which it is right
    code: str = ""

    @property
    def text(self) -> str:
        """Its code without comments, in which people write their names, and without blank lines."""
        lines = COMMENT.sub("", self.code).splitlines()
        return "\n".join(line.rstrip() for line in lines if line.strip())


JUDGED = {f.name for f in fields(Answer)} - {"student", "exercise", "code"}


@dataclass(frozen=True)
class Recorded:
    """A lesson's submissions. ``unread`` says of those that could not be graded why, ``unknown``
    are those of which grading has recorded nothing that can be counted here, ``absent`` is who is
    in the gradebook without a submission."""

    lesson: str
    answers: tuple[Answer, ...]
    unread: dict[str, str]
    unknown: tuple[str, ...]
    questions: dict[str, tuple[int, int]] = field(default_factory=dict)  # (answered, blank)
    absent: tuple[str, ...] = ()


def read(root: Path, lesson: str) -> Recorded:
    """What grading has recorded in the course directory `root` of a lesson.

    Raises:
        UserError: there is no such lesson, or nothing of it was graded.
    """
    opened = Course.of(root)
    name = opened.lesson(lesson)
    grades, secret = read_grades(root), course_secret(root)
    known = name in grades.lessons
    present = [s for s in grades.students if known and not grades.of(s, name).missing]
    answers: list[Answer] = []
    unread: dict[str, str] = {}
    unknown: list[str] = []
    questions: dict[str, tuple[int, int]] = {}
    for student in present:
        path = opened.autograded(student, name)
        receipt = read_receipt(path, secret)
        row = Row.from_json(receipt["row"]) if receipt else None
        if row is None or any("state" not in found for found in row.exercises.values()):
            unknown.append(student)
        elif not row.exercises:
            unread[student] = "; ".join(row.incidents) or row.status
        else:
            sources = _sources(path)
            for exercise, found in row.exercises.items():
                code = "" if found["state"] == BLANK else _code_of(exercise, sources)
                judged = {field: found[field] for field in JUDGED}
                answers.append(Answer(student, exercise, code=code, **judged))
            for question, found in row.questions.items():
                answered, blank = questions.get(question, (0, 0))
                written = bool(found["answered"])
                questions[question] = answered + written, blank + (not written)
    if not (answers or unread):
        again = f"`rlcourse grade {lesson}{' --force' if unknown else ''}`"
        raise UserError(f"grading has recorded nothing of {name}: run {again} first")
    absent = tuple(s for s in grades.students if s not in present)
    return Recorded(name, tuple(answers), unread, tuple(unknown), questions, absent)


def _sources(path: Path) -> dict[str, str]:
    """{grade id or number: text} of a notebook's code cells, as the grader wrote it."""
    if path.stat().st_size > LARGEST_RECEIPT:
        return {}
    cells = json.loads(path.read_text("utf-8"))["cells"]
    code = [cell for cell in cells if cell["cell_type"] == "code"]
    marks = [cell.get("metadata", {}).get("nbgrader", {}) for cell in code]
    names = [mark.get("grade_id", f" {i}") for i, mark in enumerate(marks)]
    return {name: "".join(cell["source"]) for name, cell in zip(names, code, strict=True)}


def _code_of(exercise: str, sources: dict[str, str]) -> str:
    """Where the function is written: in its own cell, else in the last one that begins it."""
    begins = re.compile(rf"^\s*def\s+{re.escape(exercise)}\b", re.MULTILINE)
    own = sources.get(exercise, "")
    elsewhere = [s for name, s in sources.items() if name != exercise and begins.search(s)]
    return elsewhere[-1] if elsewhere and (not own or own == ELSEWHERE) else own
