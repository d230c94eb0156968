"""A submission to show what grading says: lesson 02, solved, with one bug planted."""

from pathlib import Path

from rlcourse import exercises

from .builder import find_root
from .lesson import read_lesson
from .notebooks import dumps, solved_notebook, source_notebook, student_notebook
from .stubs import solution

LESSON, EXERCISE = "02_policy_gradient", "reinforce_loss"
RIGHT, WRONG = ".sum(dim=1)", ".mean(dim=1)"  # a completion's log-prob is a sum


def write_sample_submission(path: Path) -> Path:
    """Write the notebook to ``path``, and return it."""
    root = find_root()
    lesson = read_lesson(root / "course" / "lessons" / f"{LESSON}.md", exercises.all())
    source, _ = source_notebook(lesson)
    released = student_notebook(source, LESSON, root / "course" / "nbgrader_config.py")
    notebook = solved_notebook(lesson, released)
    text = solution(lesson.exercises[EXERCISE].reference, marks=False)
    if text.count(RIGHT) != 1:
        raise RuntimeError(f"{EXERCISE} no longer has the one {RIGHT} to plant a bug in")
    cell = next(cell for cell in notebook.cells if cell.id == EXERCISE)
    cell.source = text.replace(RIGHT, WRONG)
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(dumps(notebook), encoding="utf-8")
    return path
