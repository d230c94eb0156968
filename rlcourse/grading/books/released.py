"""A lesson that changes after students have handed it in: its graded cells in the gradebook.

nbgrader refuses to add or remove graded cells once there are submissions, but deletes ``release/``
before it says so. ``verify`` asks first, and ``amend`` makes the change without losing a point.
"""

from collections.abc import Iterable
from dataclasses import dataclass
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

KINDS = {GradeCell: utils.is_grade, SolutionCell: utils.is_solution}


@dataclass(frozen=True)
class Change:
    """The cells, as (kind, name), that source and gradebook do not share; how many handed in."""

    added: tuple[tuple[type, str], ...]
    removed: tuple[tuple[type, str], ...]
    submissions: int

    def __bool__(self) -> bool:
        return bool(self.added or self.removed)

    def __str__(self) -> str:
        parts = {"added": self.added, "removed": self.removed}
        return "; ".join(f"{what} {_names(cells)}" for what, cells in parts.items() if cells)


def change(gradebook: Gradebook, lesson: str, source: NotebookNode) -> Change:
    """How the graded cells of `source` differ from those in the gradebook, which has the lesson."""
    known = gradebook.find_notebook(lesson, lesson)
    new, old = _cells(source), [(type(cell), cell.name) for cell in _entered(known)]
    added = tuple(cell for cell in new if cell not in old)
    removed = tuple(cell for cell in old if cell not in new)
    return Change(added, removed, len(known.submissions))


def verify(gradebook: Gradebook, lesson: str, source: NotebookNode) -> None:
    """Refuse a source whose graded cells are not those for which submissions have grades."""
    try:
        found = change(gradebook, lesson, source)
    except MissingEntry:
        return
    if found and found.submissions:
        raise UserError(
            f"the graded cells of {lesson} are not those for which submissions have points "
            f"({found}): run `rlcourse amend {lesson}`, which keeps the points of all other cells, "
            "and then this command again, which has changed nothing."
        )


def verify_release(directory: CourseDirectory) -> None:
    """The same for the lesson that nbgrader is about to generate; this imports no torch."""
    lesson, url = directory.assignment_id, directory.db_url
    path = Path(directory.format_path(directory.source_directory, ".", lesson), f"{lesson}.ipynb")
    new = url.startswith("sqlite:///") and not Path(url.removeprefix("sqlite:///")).is_file()
    if path.is_file() and not new:  # of what is missing, nbgrader itself says so
        with Gradebook(url, directory.course_id) as gradebook:
            verify(gradebook, lesson, nbformat.read(path, as_version=4))


def keep_in_step(
    gradebook: Gradebook, lesson: str, source: NotebookNode, config: Config, url: str
) -> None:
    """Enter the lesson, and its points if they are others now, as generate_assignment does."""
    verify(gradebook, lesson, source)
    try:
        known = gradebook.find_notebook(lesson, lesson)
    except MissingEntry:
        register(gradebook, lesson, source, config, url)
        return
    points = {cell.name: cell.max_score for cell in known.grade_cells}
    if change(gradebook, lesson, source) or points != _points(source):
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


def amend(gradebook: Gradebook, lesson: str, source: NotebookNode, drop: bool = False) -> Change:
    """Give a lesson with submissions the cells of `source`; all else keeps its points.

    Without `drop`, a removed cell raises ``UserError``, because its points would be lost. All of it
    is one transaction. Afterwards nbgrader finds the cells that it expects.
    """
    try:
        found = change(gradebook, lesson, source)
    except MissingEntry:
        raise UserError(
            f"the gradebook does not have {lesson} yet: run `nbgrader generate_assignment {lesson}`"
        ) from None
    if found.removed and not drop:
        raise UserError(
            f"{_names(found.removed)} would be removed with all points given for it: put it "
            "back into the lesson and build again, or pass --drop to lose these points."
        )
    known = gradebook.find_notebook(lesson, lesson)
    for cell in _entered(known):
        if (type(cell), cell.name) in found.removed:
            for row in (*getattr(cell, "grades", ()), *getattr(cell, "comments", ())):
                gradebook.db.delete(row)
            gradebook.db.delete(cell)
    points = _points(source)
    for kind, name in found.added:  # generate_assignment fills in what else it knows of them
        more: dict[str, Any] = {} if kind is SolutionCell else {"cell_type": "markdown"}
        more |= {"max_score": points[name]} if kind is GradeCell else {}
        gradebook.db.add(kind(name=name, notebook_id=known.id, **more))
    gradebook.db.flush()
    gradebook.db.expire_all()
    for submitted in known.submissions:
        complete(submitted)
    gradebook.db.commit()
    return found


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


def _names(cells: Iterable[tuple[type, str]]) -> str:
    return ", ".join(dict.fromkeys(name for _, name in cells))


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
