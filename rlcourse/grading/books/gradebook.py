"""nbgrader's side: the gradebook through nbgrader's own interface, and the autograded notebooks.

A submission's grades are written in one transaction, then its notebook is put in place in one
step. The notebook is the receipt: a grader that was killed in between grades that one again.
"""

import hmac
import json
import os
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

import nbformat
from nbformat import NotebookNode
from nbgrader import utils
from nbgrader.api import (
    InvalidEntry,
    MissingEntry,
)
from nbgrader.coursedir import CourseDirectory
from sqlalchemy.engine import make_url
from sqlalchemy.exc import SAWarning, SQLAlchemyError
from traitlets.config import Config, PyFileConfigLoader

from rlcourse.courses import current
from rlcourse.courses.course import chosen
from rlcourse.errors import UserError, first_line
from rlcourse.files import TEMPORARY, replace_bytes
from rlcourse.grading.books import reopening
from rlcourse.grading.books.due import enter_due_dates
from rlcourse.grading.books.extensions import enter, enter_extensions, known
from rlcourse.grading.books.late import Late
from rlcourse.grading.books.opening import open_gradebook
from rlcourse.grading.books.released import enter_lesson
from rlcourse.grading.handing_in.student_folder import SECRET, TIMESTAMP
from rlcourse.grading.judging.mark import Mark
from rlcourse.grading.locking import only_one

BUSY_SECONDS = 60.0  # how long to wait for another program that writes to the gradebook
BUSY = (
    "another program has been writing to the gradebook for a minute: close it or wait for it, then "
    "run the same command again, which continues where this one stopped."
)
KEY = "rlcourse_grading"  # of the receipt in a notebook's metadata
LARGEST_RECEIPT = 80 * 2**20  # bytes of a notebook that one is read from; none of ours is larger


@dataclass(frozen=True)
class Course:
    """An nbgrader course directory with its settings."""

    directory: CourseDirectory
    config: Config

    @property
    def root(self) -> Path:
        return Path(self.directory.root)

    @classmethod
    def open(cls, root: Path) -> "Course":
        """The course in `root`, as its ``nbgrader_config.py`` says."""
        path, config = root / "nbgrader_config.py", Config()
        if path.is_file():
            try:
                config = PyFileConfigLoader(path.name, str(root)).load_config()
            except (Exception, SystemExit) as error:  # it is code, and may do anything
                raise UserError(f"{path} cannot be run: {_said(error)}") from error
        config.CourseDirectory.root = str(root.resolve())
        return cls(CourseDirectory(config=config), config)

    @classmethod
    def of(cls, root: Path | None) -> "Course":
        """The course in `root`, or the current one. ``UserError`` if there is none."""
        if root is not None and not root.is_dir():
            raise UserError(f"there is no course directory {root}.")
        return cls.open(current().directory if root is None else root)

    def lesson(self, wanted: str) -> str:
        """The full name of a lesson, from its name or number. ``UserError`` if there is none."""
        sources = self.step(self.directory.source_directory)
        known = sorted(path.parent.name for path in sources.glob("*/*.ipynb"))
        if name := chosen(known, wanted):
            return name
        taught = [lesson.name for lesson in current(self.root).lessons]
        if name := chosen(taught, wanted):
            raise UserError(f"{name} is not built yet: run `rlcourse build {name[:2]}` first.")
        choice = f"choose from {', '.join(known)}" if known else "run `rlcourse build` first"
        raise UserError(f"there is no lesson {wanted!r} in {sources}: {choice}.")

    def step(self, name: str) -> Path:
        """One of nbgrader's directories: "submitted", "autograded", …"""
        return Path(os.path.realpath(self.directory.format_path(name, ".", ".")))

    def source(self, lesson: str) -> Path:
        directory = self.directory.format_path(self.directory.source_directory, ".", lesson)
        return Path(directory) / f"{lesson}.ipynb"

    def autograded(self, student: str, lesson: str) -> Path:
        step = self.directory.autograded_directory
        return Path(self.directory.format_path(step, student, lesson)) / f"{lesson}.ipynb"


def _said(error: BaseException) -> str:
    line = f", line {error.lineno}" if isinstance(error, SyntaxError) else ""
    return f"{type(error).__name__}{line}: {first_line(error)}"


class Grades:
    """One lesson's grades in the gradebook."""

    def __init__(self, course: Course, lesson: str, source: NotebookNode):
        self.course, self.lesson = course, lesson
        url = _patient(course.directory.db_url)
        with self._alone():
            enter_lesson(course.directory, lesson, source, course.config, url)
            self.gradebook = open_gradebook(course.directory, url)
            enter_due_dates(self.gradebook, course.root)
            enter_extensions(self.gradebook, course.root)
        warnings.filterwarnings("ignore", category=SAWarning, module="nbgrader")
        self.late, self.extended = Late(course.config), known(course.root).get(lesson, {})

    def __enter__(self) -> "Grades":
        return self

    def __exit__(self, *_) -> None:
        self.gradebook.close()

    @contextmanager
    def _alone(self) -> Iterator[None]:
        """One grader of the course writes at a time, and waits for others, such as Formgrader."""
        path = self.course.step(self.course.directory.autograded_directory) / ".gradebook.lock"
        with only_one(path, BUSY_SECONDS, BUSY):
            try:
                yield
                self.gradebook.db.remove()  # so that the next look sees changes by others
            except (SQLAlchemyError, InvalidEntry) as error:
                if "database is locked" in str(error):
                    raise UserError(BUSY) from None
                raise

    def students(self) -> list[str]:
        """The ids of all students in the gradebook."""
        with self._alone():
            return [student.id for student in self.gradebook.students]

    def graded(self) -> set[str]:
        """The ids of all students of whose submission the gradebook has points."""
        with self._alone():
            return {s.student_id for s in self.gradebook.assignment_submissions(self.lesson)}

    def waiting(self) -> dict[str, dict[str, bool]]:
        """By student the cells that wait for a person, and whether that is for points."""
        found: dict[str, dict[str, bool]] = {}
        with self._alone():
            for submission in self.gradebook.assignment_submissions(self.lesson):
                grades = (grade for notebook in submission.notebooks for grade in notebook.grades)
                for grade in (grade for grade in grades if grade.needs_manual_grade):
                    cells = found.setdefault(submission.student_id, {})
                    cells[grade.name] = grade.auto_score is None
        return found

    def lateness(self) -> dict[str, tuple[float, float]]:
        """{each student who was late: (by how many seconds, the penalty)}, extensions counted.

        The due date, an extension or points by hand may have changed since a submission was graded,
        so penalties are computed anew.
        """
        with self._alone():
            found = {}
            for submission in self.gradebook.assignment_submissions(self.lesson):
                student = submission.student_id
                penalty = self.late.penalize(self.gradebook, student, submission)
                if submission.total_seconds_late > 0:
                    found[student] = submission.total_seconds_late, penalty
            self.gradebook.db.commit()
        return found

    def write(
        self,
        student: str,
        notebook: NotebookNode,
        marks: dict[str, Mark],
        failed: bool,
        timestamp: str | None,
    ) -> tuple[float, dict[str, bool]]:
        """Write a submission's grades, manual ones left as they are: (score, what waits for a
        person as in ``waiting``).

        With `failed`, everything that a program grades is 0 and marked for a person to look at.
        """
        cells = {
            cell.metadata.nbgrader.grade_id: cell
            for cell in notebook.cells
            if "nbgrader" in cell.metadata
        }
        unchanged = reopening.unchanged(self.course.autograded(student, self.lesson), notebook)
        with self._alone():
            self.gradebook.update_or_create_student(student)
            submission = self.gradebook.update_or_create_submission(self.lesson, student)
            submission.timestamp = utils.parse_utc(timestamp)  # None too: another may be there
            (submitted,) = submission.notebooks
            for grade in submitted.grades:
                cell, mark = cells.get(grade.name), marks.get(grade.name)
                score, was = _auto_score(cell, mark, failed), grade.auto_score
                settled = grade.manual_score is not None and not grade.needs_manual_grade
                same = grade.name in unchanged and was == score
                waits = failed or score is None or grade.manual_score is not None
                grade.auto_score, grade.needs_manual_grade = score, waits and not (settled and same)
            for comment in submitted.comments:
                cell = cells.get(comment.name)
                blank = cell is None or _is_unanswered(cell)
                comment.auto_comment = "No response." if blank else None
            self.gradebook.db.flush()
            if until := self.extended.get(student):
                enter(self.gradebook, self.lesson, student, until)
            self.late.penalize(self.gradebook, student, submission)
            grades = submitted.grades
            waiting = {g.name: g.auto_score is None for g in grades if g.needs_manual_grade}
            total = float(sum(grade.auto_score or 0.0 for grade in grades))
            self.gradebook.db.commit()
        return total, waiting

    def keep_time(self, student: str, timestamp: str | None) -> None:
        """Have the gradebook say when this was handed in, where nothing needs grading again."""
        with self._alone(), suppress(MissingEntry):
            submission = self.gradebook.find_submission(self.lesson, student)
            if submission.timestamp != (time := utils.parse_utc(timestamp)):
                submission.timestamp = time
                self.late.penalize(self.gradebook, student, submission)
                self.gradebook.db.commit()


def _patient(url: str) -> str:
    """The gradebook's address, with the time that SQLite waits for a lock."""
    address = make_url(url)
    if address.get_backend_name() == "sqlite":
        address = address.update_query_dict({"timeout": str(BUSY_SECONDS)})
    return address.render_as_string(hide_password=False)


def _auto_score(cell: NotebookNode | None, mark: Mark | None, failed: bool) -> float | None:
    """Points, or None if a person has to give them."""
    if mark is not None:
        return mark.points
    if failed or cell is None or _is_unanswered(cell):
        return 0.0
    return None


def _is_unanswered(cell: NotebookNode) -> bool:
    """Whether an answer is as it was released."""
    nbgrader = cell.metadata.nbgrader
    return bool(nbgrader.get("solution")) and nbgrader.get("checksum") == utils.compute_checksum(
        cell
    )


def questions(notebook: NotebookNode, marks: dict[str, Mark]) -> dict[str, dict]:
    """{question: whether it is answered, and points} for all that a person grades."""
    found = {}
    for cell in notebook.cells:
        about = cell.metadata.get("nbgrader", {})
        if about.get("grade") and about["grade_id"] not in marks:
            answered = not _is_unanswered(cell)
            points = None if answered else 0.0
            possible = float(about["points"])
            found[about["grade_id"]] = dict(answered=answered, points=points, possible=possible)
    return found


# Autograded notebooks


def write_receipt(path: Path, notebook: NotebookNode, receipt: dict, secret: bytes) -> None:
    """Write the autograded notebook in one step, with the sealed receipt of what was graded."""
    notebook.metadata[KEY] = {**receipt, "seal": _seal(receipt, secret)}
    _write(path, json.dumps(notebook, ensure_ascii=False))


def write_notes(directory: Path, notes: dict[str, str]) -> None:
    """Pass the exchange's notes on: released feedback needs them to reach the student."""
    for name in (TIMESTAMP, SECRET):
        if name in notes:
            _write(directory / name, notes[name])
        else:
            (directory / name).unlink(missing_ok=True)


def _write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    replace_bytes(path, text.encode())


def read_receipt(path: Path, secret: bytes) -> dict | None:
    """What an earlier run recorded about the submission; None if there was none.

    Plain nbgrader may have written the notebook, with anything in it that a student handed in.
    """
    try:
        if path.stat().st_size > LARGEST_RECEIPT:
            return None
        receipt = json.loads(path.read_text("utf-8"))["metadata"][KEY]
        seal = receipt.pop("seal")
        return receipt if hmac.compare_digest(seal, _seal(receipt, secret)) else None
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return None


def _seal(receipt: dict, secret: bytes) -> str:
    """Only receipts that we wrote are believed: plain nbgrader keeps a student's metadata."""
    return hmac.new(secret, json.dumps(receipt, sort_keys=True).encode(), "sha256").hexdigest()


def remove_leftovers(path: Path) -> None:
    """Half-written files of a run that was killed."""
    for part in path.parent.glob(f"{TEMPORARY}*"):
        with suppress(OSError):
            part.unlink()


def load_source(course: Course, lesson: str) -> NotebookNode:
    """The instructor's notebook of a lesson."""
    path = course.source(lesson)
    try:
        found = nbformat.read(path, as_version=4)
        if not any("nbgrader" in cell.metadata for cell in found.cells):
            raise ValueError("nothing is graded")
    except FileNotFoundError:
        raise UserError(f"there is no {path}: run `rlcourse build {lesson}` first.") from None
    except Exception as error:  # whatever nbformat raises on what is no notebook
        raise UserError(f"{path} is damaged: run `rlcourse build {lesson}` again.") from error
    return found
