"""A lesson that changes after students have handed it in: its graded cells in the gradebook.

nbgrader refuses to add or remove graded cells once there are submissions, but deletes ``release/``
before it says so. Here cells are added without losing a point, and only their removal is refused.
"""

from pathlib import Path
from typing import Any

import nbformat
from nbformat import NotebookNode
from nbgrader import utils
from nbgrader.api import (
    Comment,
    Grade,
    Gradebook,
    GradeCell,
    MissingEntry,
    Notebook,
    SolutionCell,
    SourceCell,
    SubmittedNotebook,
)
from nbgrader.coursedir import CourseDirectory
from nbgrader.preprocessors import ClearSolutions, ComputeChecksums, SaveCells
from traitlets.config import Config

from rlcourse.errors import UserError
from rlcourse.grading.books.opening import is_absent, open_gradebook

KINDS = {GradeCell: utils.is_grade, SolutionCell: utils.is_solution}


def enter_added(gradebook: Gradebook, lesson: str, source: NotebookNode) -> bool:
    """Give a lesson that has submissions the graded cells that `source` has and it has not; all
    else keeps its points. Whether there were any.

    Raises:
        UserError: `source` lacks a cell for which submissions have points.
    """
    try:
        known = gradebook.find_notebook(lesson, lesson)
    except MissingEntry:
        return False
    new, old = _cells(source), [(type(cell), cell.name) for cell in _entered(known)]
    added = [cell for cell in new if cell not in old]
    removed = dict.fromkeys(name for kind, name in old if (kind, name) not in new)
    if not known.submissions:
        return bool(added or removed)
    if removed:
        raise UserError(
            f"{lesson} no longer has {', '.join(removed)}, for which submissions have points: put "
            "it back into the lesson, where it need not count any more (0 under [points] in "
            "course.toml), and build again; nothing was changed"
        )
    points = _points(source)
    for kind, name in added:  # ``register`` fills in what else nbgrader knows of them
        more: dict[str, Any] = {} if kind is SolutionCell else {"cell_type": "markdown"}
        more |= {"max_score": points[name]} if kind is GradeCell else {}
        gradebook.db.add(kind(name=name, notebook_id=known.id, **more))
    gradebook.db.flush()
    gradebook.db.expire_all()
    for submitted in known.submissions:
        complete(submitted)
    gradebook.db.commit()
    return bool(added)


def enter_added_of(directory: CourseDirectory) -> None:
    """The same for the lesson that nbgrader is about to generate; this imports no torch."""
    lesson = directory.assignment_id
    path = Path(directory.format_path(directory.source_directory, ".", lesson), f"{lesson}.ipynb")
    if path.is_file() and not is_absent(directory):  # of what is missing, nbgrader itself says so
        with open_gradebook(directory) as gradebook:
            enter_added(gradebook, lesson, nbformat.read(path, as_version=4))


def keep_in_step(
    gradebook: Gradebook, lesson: str, source: NotebookNode, config: Config, url: str
) -> None:
    """Enter the lesson, and its cells and points if they are others now, as generate_assignment
    does."""
    changed = enter_added(gradebook, lesson, source)
    try:
        known = gradebook.find_notebook(lesson, lesson)
    except MissingEntry:
        changed = True
    if changed or {c.name: c.max_score for c in known.grade_cells} != _points(source):
        register(gradebook, lesson, source, config, url)


def register(
    gradebook: Gradebook, lesson: str, source: NotebookNode, config: Config, url: str
) -> None:
    """Make the lesson's cells known to the gradebook at `url`, by nbgrader's own steps."""
    gradebook.update_or_create_assignment(lesson)
    resources = {"nbgrader": {"notebook": lesson, "assignment": lesson, "db_url": url}}
    notebook = nbformat.from_dict(source)
    for step in (ClearSolutions, ComputeChecksums, SaveCells):
        notebook, resources = step(config=config).preprocess(notebook, resources)


def complete(submitted: SubmittedNotebook) -> None:
    """Rows for cells that the lesson did not have when this submission was first graded."""
    known = submitted.notebook
    graded = {grade.cell_id for grade in submitted.grades}
    for cell in (*known.grade_cells, *known.task_cells):
        if cell.id not in graded:
            submitted.grades.append(Grade(cell_id=cell.id))
    commented = {comment.cell_id for comment in submitted.comments}
    for cell in (*known.solution_cells, *known.task_cells):
        if cell.id not in commented:
            submitted.comments.append(Comment(cell_id=cell.id))


def _entered(known: Notebook) -> list:
    return [*known.grade_cells, *known.solution_cells, *known.source_cells]


def _cells(source: NotebookNode) -> list[tuple[type, str]]:
    """What nbgrader's SaveCells enters for a notebook: kinds and names."""
    found: list[tuple[type, str]] = []
    for cell in source.cells:
        kinds = [kind for kind, applies in KINDS.items() if applies(cell)]
        if kinds or utils.is_locked(cell):
            name = cell.metadata.nbgrader.grade_id
            found += [(kind, name) for kind in (*kinds, SourceCell)]
    return found


def _points(source: NotebookNode) -> dict[str, float]:
    return {
        cell.metadata.nbgrader.grade_id: float(cell.metadata.nbgrader.points)
        for cell in source.cells
        if utils.is_grade(cell)
    }
