"""Read what grading recorded of a lesson: nobody's code is run, imported or even parsed."""

import json
import re
from dataclasses import dataclass, field
from pathlib import Path

from rlcourse.errors import UserError
from rlcourse.grading.books.gradebook import LARGEST_RECEIPT, Course, read_receipt
from rlcourse.grading.books.grades import ClassGrades, read_grades
from rlcourse.grading.handing_in.submission import ELSEWHERE
from rlcourse.grading.judging.finding import BLANK
from rlcourse.grading.judging.judge import course_secret
from rlcourse.grading.report import Row

COMMENT = re.compile(r"#[^\n\"']*$", re.MULTILINE)  # one that holds no quote, so is no string's


@dataclass(frozen=True)
class Answer:
    """One student's answer to one exercise, as it was judged."""

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
    outputs: str = ""
    code: str = ""

    @property
    def lost(self) -> float:
        return self.possible - self.points

    @property
    def text(self) -> str:
        """Its code without comments, blank lines and spaces at the ends of lines."""
        lines = COMMENT.sub("", self.code).splitlines()
        return "\n".join(line.rstrip() for line in lines if line.strip())


@dataclass(frozen=True)
class Recorded:
    """A lesson's submissions. ``unread`` says of those that could not be graded why, ``unknown``
    are those of which grading has recorded nothing that can be counted here."""

    lesson: str
    answers: tuple[Answer, ...]
    unread: dict[str, str]
    unknown: tuple[str, ...]
    questions: dict[str, tuple[int, int]] = field(default_factory=dict)  # (answered, blank)
    grades: ClassGrades | None = None

    @property
    def students(self) -> list[str]:
        return sorted({answer.student for answer in self.answers})


def read(root: Path, lesson: str) -> Recorded:
    """What grading has recorded in the course directory `root` of a lesson.

    Raises:
        UserError: there is no such lesson, or nothing of it was graded.
    """
    opened = Course.of(root)
    name = opened.lesson(lesson)
    grades = read_grades(root)
    secret = course_secret(root)
    answers: list[Answer] = []
    unread: dict[str, str] = {}
    unknown: list[str] = []
    questions: dict[str, tuple[int, int]] = {}
    known = name in grades.lessons
    for student in [s for s in grades.students if known and not grades.of(s, name).missing]:
        path = opened.autograded(student, name)
        receipt = read_receipt(path, secret)
        row = Row.from_json(receipt["row"]) if receipt else None
        if row is None or any("state" not in found for found in row.exercises.values()):
            unknown.append(student)
        elif not row.exercises:
            unread[student] = "; ".join(row.incidents) or row.status
        else:
            sources = _sources(path)
            answers += [_answer(student, e, row.exercises[e], sources) for e in row.exercises]
            for question, found in row.questions.items():
                answered, blank = questions.get(question, (0, 0))
                written = bool(found["answered"])
                questions[question] = answered + written, blank + (not written)
    if not (answers or unread):
        again = f"`rlcourse grade {lesson}{' --force' if unknown else ''}`"
        raise UserError(f"grading has recorded nothing of {name}: run {again} first")
    return Recorded(name, tuple(answers), unread, tuple(unknown), questions, grades)


def _answer(student: str, exercise: str, found: dict, sources: dict[str, str]) -> Answer:
    return Answer(
        student,
        exercise,
        found["points"],
        found["possible"],
        found["state"],
        found["mistake"],
        tuple(found["sentences"]),
        found["heading"],
        tuple((what, value) for what, value in found["case"]),
        tuple(found["because"]),
        tuple(found["once"]),
        found["outputs"],
        "" if found["state"] == BLANK else _code_of(exercise, sources),
    )


def _sources(path: Path) -> dict[str, str]:
    """{grade id or number: text} of a notebook's code cells, as the grader wrote it."""
    if path.stat().st_size > LARGEST_RECEIPT:
        return {}
    cells = json.loads(path.read_text("utf-8"))["cells"]
    return {
        cell.get("metadata", {}).get("nbgrader", {}).get("grade_id", f" {i}"): (
            "".join(cell["source"])
        )
        for i, cell in enumerate(cells)
        if cell["cell_type"] == "code"
    }


def _code_of(exercise: str, sources: dict[str, str]) -> str:
    """Where the function is written: in its own cell, else in the last one that begins it."""
    begins = re.compile(rf"^\s*def\s+{re.escape(exercise)}\b", re.MULTILINE)
    own = sources.get(exercise, "")
    elsewhere = [s for name, s in sources.items() if name != exercise and begins.search(s)]
    return elsewhere[-1] if elsewhere and (not own or own == ELSEWHERE) else own
