"""A small course to grade in: its directory, and submissions of every kind."""

import copy
import json
import os
import re
import shutil
import sqlite3
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path

import nbformat
from nbformat.v4 import new_code_cell, new_markdown_cell

sys.path.insert(0, str(Path(__file__).parents[1]))  # for who runs this without pytest

from small_courses import write_course

from rlcourse.authoring import stubs
from rlcourse.authoring.builder import build
from rlcourse.courses import shipped
from rlcourse.exercises import all as all_exercises
from rlcourse.exercises import get as get_exercise
from rlcourse.grading.confinement.probing import probe
from rlcourse.grading.running.conversation import Conversation
from rlcourse.grading.running.limits import Limits
from rlcourse.grading.running.sandbox import Account
from rlcourse.grading.running.steps import Transcript

REPOSITORY = Path(__file__).parents[2]
LESSON = "02_policy_gradient"
NAMES = [e.name for e in all_exercises() if e.lesson == LESSON]
POINTS = {e.name: float(e.points) for e in all_exercises() if e.lesson == LESSON}
sharing = True  # whether gradings use one server, as conftest.py has it
ANSWER = "Fifteen push up a little, the wrong one does nothing; it should push down."


def make_course(root: Path) -> Path:
    """The course directory of a repository in `root` that has one lesson, built."""
    course = write_course(root / "course", {LESSON: None})
    build(root=root, progress=False)
    return course


def without_demos() -> str:
    """The lesson's text without what costs every kernel seconds: the trainer, and its demos."""
    text = shipped().lesson(LESSON).text.read_text()
    text = re.sub(r"\nfrom rlcourse.training import [^\n]*", "", text)
    text = re.sub(r"```python[^\n]*\nif ready\(.*?```\n", "", text, flags=re.DOTALL)
    return text.replace("<!-- opening -->", "")  # one of them draws that picture


def released(course: Path):
    """The student's notebook as it was handed out."""
    path = course.parent / "notebooks" / LESSON / f"{LESSON}.ipynb"
    return nbformat.read(path, as_version=4)


def solution(name: str) -> str:
    return stubs.solution(get_exercise(name).reference, marks=False)


def solved(course: Path, names=NAMES, answer: str = ANSWER):
    """A submission in which the named exercises are solved, and the question is answered."""
    notebook = released(course)
    for name in names:
        cell_of(notebook, name).source = solution(name)
    if answer:
        cell_of(notebook, "applause").source = answer
    return notebook


def cell_of(notebook, grade_id: str):
    return next(
        c for c in notebook.cells if c.metadata.get("nbgrader", {}).get("grade_id") == grade_id
    )


def index_of(notebook, grade_id: str) -> int:
    return next(i for i, c in enumerate(notebook.cells) if c is cell_of(notebook, grade_id))


def with_answers(notebook, **sources: str):
    """A copy in which the named cells have other text."""
    changed = copy.deepcopy(notebook)
    for grade_id, source in sources.items():
        cell_of(changed, grade_id).source = source
    return changed


def with_code(notebook, source: str, before: str = NAMES[0], **metadata):
    """A copy with an added code cell in front of the named one."""
    changed = copy.deepcopy(notebook)
    changed.cells.insert(index_of(changed, before), new_code_cell(source, metadata=metadata))
    return changed


def with_markdown(notebook, source: str, before: str = NAMES[0]):
    changed = copy.deepcopy(notebook)
    changed.cells.insert(index_of(changed, before), new_markdown_cell(source))
    return changed


def run(sandbox, steps, limits: Limits = Limits()) -> Transcript:  # noqa: B008
    """Have a server carry out a submission's steps, within one budget."""
    with sandbox.line() as line:
        return Conversation(Account(line, limits)).run(steps)


def submit(course: Path, student: str, notebook) -> Path:
    """Put a notebook (or bytes, or text) where nbgrader collects it."""
    path = course / "submitted" / student / LESSON / f"{LESSON}.ipynb"
    path.parent.mkdir(parents=True, exist_ok=True)
    if isinstance(notebook, bytes):
        path.write_bytes(notebook)
    elif isinstance(notebook, str):
        path.write_text(notebook)
    else:
        path.write_text(json.dumps(notebook))
    return path


def query(course: Path, sql: str, *parameters):
    with sqlite3.connect(course / "gradebook.db") as database:
        return database.execute(sql, parameters).fetchall()


GRADES = """
select student.id, base_cell.name, grade.auto_score, grade.manual_score, grade.needs_manual_grade
from grade join submitted_notebook on grade.notebook_id = submitted_notebook.id
join submitted_assignment on submitted_notebook.assignment_id = submitted_assignment.id
join student on submitted_assignment.student_id = student.id
join base_cell on grade.cell_id = base_cell.id
"""


def grades(course: Path, student: str) -> dict[str, float | None]:
    """Automatic scores of a student by grade id, out of the gradebook."""
    found = query(course, f"{GRADES} where student.id = ?", student)
    assert len({row[1] for row in found}) == len(found)
    return {row[1]: row[2] for row in found}


@contextmanager
def servers_watched() -> Iterator[Callable[[], set[str]]]:
    """Gives a function that lists the untrusted processes of graders started meanwhile.

    They are told from other tests' by the directory in which their library stands.
    """
    global sharing
    before, directory = tempfile.tempdir, tempfile.mkdtemp(prefix="rlcourse-servers-")
    os.chmod(directory, 0o755)
    tempfile.tempdir, sharing = directory, False
    try:
        yield lambda: _processes_with(directory.encode())
    finally:
        tempfile.tempdir, sharing = before, True
        shutil.rmtree(directory, ignore_errors=True)


def _processes_with(word: bytes) -> set[str]:
    found = set()
    for entry in Path("/proc").iterdir():
        with suppress(OSError):
            if entry.name.isdigit() and word in (entry / "cmdline").read_bytes():
                found.add(entry.name)
    return found


@cache
def words_of_a_leak() -> tuple[str, ...]:
    """What an attack must not be able to print on this machine, as attacks_on_files.py says."""
    hides_names = "mount" in probe().standing
    return ("HIDDEN-TREASURE", "LEAK", *("SEEN",) * hides_names)


def autograded(course: Path, student: str):
    path = course / "autograded" / student / LESSON / f"{LESSON}.ipynb"
    return nbformat.read(path, as_version=4)
