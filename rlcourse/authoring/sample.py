"""A submission to show what grading says: lesson 02, solved, with one bug planted."""

from pathlib import Path

import nbformat

from rlcourse import exercises
from rlcourse.lab.lessons import course_lessons

from .stubs import solution

LESSON, EXERCISE = "02_policy_gradient", "reinforce_loss"
RIGHT, WRONG = ".sum(dim=1)", ".mean(dim=1)"  # a completion's log-prob is a sum


def write_sample_submission(path: Path) -> Path:
    """Write the notebook to ``path``, and return it."""
    notebook = nbformat.read(course_lessons()[LESSON], as_version=4)
    texts = {
        exercise.name: solution(exercise.reference, marks=False)
        for exercise in exercises.all()
        if exercise.lesson == LESSON
    }
    if texts[EXERCISE].count(RIGHT) != 1:
        raise RuntimeError(f"{EXERCISE} no longer has the one {RIGHT} to plant a bug in")
    texts[EXERCISE] = texts[EXERCISE].replace(RIGHT, WRONG)
    for cell in notebook.cells:
        cell.source = texts.get(cell.id, cell.source)
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    nbformat.write(notebook, path)
    return path
