"""A sample submission for `rlcourse demo`: a solved lesson of the course with one bug."""

from pathlib import Path

import nbformat

from rlcourse import exercises
from rlcourse.courses import shipped
from rlcourse.errors import UserError

from .stubs import solution


def write_sample_submission(path: Path) -> Path:
    """Write the notebook to ``path``, and return it."""
    course = shipped()
    bug = course.sample
    lesson = course.exercises[bug["exercise"]]
    notebook = nbformat.read(course.notebook(lesson.name), as_version=4)
    texts = {
        name: solution(exercises.get(name, course).reference, marks=False)
        for name in lesson.exercises
    }
    if texts[bug["exercise"]].count(bug["right"]) != 1:
        raise UserError(
            f"{course.file}: {bug['exercise']} does not contain {bug['right']} exactly once."
        )
    texts[bug["exercise"]] = texts[bug["exercise"]].replace(bug["right"], bug["wrong"])
    for cell in notebook.cells:
        cell.source = texts.get(cell.id, cell.source)
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    nbformat.write(notebook, path)
    return path
