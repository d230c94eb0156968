"""A lesson's three notebooks: the instructor's source, the student's, and the solved one.

The source carries nbgrader's metadata, solution marks and hidden tests. The student's notebook is
what nbgrader's own ``generate_assignment`` makes of it. The solved one is the student's with the
solutions written in, so it is also a perfect submission.
"""

import ast
import io
import logging
import re
import tempfile
from dataclasses import replace
from pathlib import Path

import nbformat
from nbformat import NotebookNode
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook
from nbgrader.converters import GenerateAssignment
from nbgrader.converters.base import NbGraderException
from nbgrader.coursedir import CourseDirectory
from traitlets.config import Config, PyFileConfigLoader

from rlcourse.checks.asking.names import free_names
from rlcourse.courses import LessonFolder
from rlcourse.errors import UserError
from rlcourse.words import counted

from . import hosted, stubs
from .cells import cell_id, names_bound_by, without_magics
from .lesson import Cell, Lesson

CHECK = """\
check({name})
### BEGIN HIDDEN TESTS
check({name}, hidden=True).points
### END HIDDEN TESTS"""


def source_notebook(
    lesson: Lesson, ours: bool = True, neighbors: dict[str, LessonFolder | None] | None = None
) -> tuple[NotebookNode, dict[str, int]]:
    """The instructor's notebook, and the line of the lesson file that each cell id comes from.

    Where rlcourse is published, a notebook of `ours` says so; it is not where others' lie. It ends
    with links to its `neighbors`, each under what is said before the link.
    """
    notebook = new_notebook(
        metadata={
            "title": lesson.title,
            "kernelspec": {
                "display_name": "Python 3 (ipykernel)",
                "language": "python",
                "name": "python3",
            },
            "language_info": {"name": "python"},
            "rlcourse": {"lesson": lesson.name},
        }
    )
    defined: set[str] = set()
    lines: dict[str, int] = {}
    for cell in _opened(lesson) if ours else lesson.cells:
        if cell.kind in ("code", "exercise") and "set-up" not in lines:
            notebook.cells.append(hosted.setup_cell(ours))
            lines["set-up"] = cell.line
        if cell.kind == "exercise":
            _verify_imports(lesson, cell, defined)
            defined.add(cell.name)
        elif cell.kind == "code":
            defined |= names_bound_by(ast.parse(without_magics(cell.source)))
        for made in _notebook_cells(lesson, cell):
            made["id"] = _cell_id(made, lines)
            lines[made["id"]] = cell.line
            notebook.cells.append(made)
    links = [
        f"{said}: [{other.heading}](../{other.name}/{other.name}.ipynb)"
        for said, other in (neighbors or {}).items()
        if other is not None
    ]
    if links:
        notebook.cells.append(new_markdown_cell(" · ".join(links), id="next-lesson"))
        lines["next-lesson"] = cell.line
    return notebook, lines


def _opened(lesson: Lesson) -> list[Cell]:
    """The lesson's cells, the first with the links that open the notebook elsewhere."""
    first, *others = lesson.cells
    return [replace(first, source=hosted.with_links(first.source, lesson.name)), *others]


def _notebook_cells(lesson: Lesson, cell: Cell) -> list[NotebookNode]:
    if cell.kind == "exercise":
        exercise = lesson.exercises[cell.name]
        return [
            new_markdown_cell(_heading(exercise)),
            _graded(new_code_cell, cell.name, stubs.solution(exercise.reference)),
            _graded(
                new_code_cell,
                f"check_{cell.name}",
                CHECK.format(name=cell.name),
                points=exercise.points,
                solution=False,
            ),
        ]
    if cell.kind == "question":
        answer, rubric = lesson.answer(cell.name), lesson.rubric(cell.name)
        if rubric:  # nbgrader replaces all of it before a student sees the notebook
            answer += f"\n\n**How the points split**\n\n{rubric}"
        return [
            new_markdown_cell(cell.source),
            _graded(new_markdown_cell, cell.name, answer, points=cell.points),
        ]
    if cell.kind in ("answer", "rubric"):
        return []  # it is in the cell that follows its question
    if cell.kind == "markdown":
        return [new_markdown_cell(cell.source)]
    tags = list(cell.tags)
    if "demo" in tags:
        tags.append("skip-execution")  # nbgrader's autograde and Validate pass over such cells
    return [new_code_cell(cell.source, metadata={"tags": tags} if tags else {})]


def _heading(exercise) -> str:
    """What a student wants to know before starting: points, difficulty from 1 to 5, minutes."""
    difficulty = "●" * exercise.difficulty + "○" * (5 - exercise.difficulty)
    points = counted(exercise.points, "point")
    return f"`{exercise.name}` · {points} · {difficulty} · about {exercise.minutes} minutes"


def _graded(make, grade_id: str, source: str, points=None, solution: bool = True) -> NotebookNode:
    metadata = {
        "grade": points is not None,
        "grade_id": grade_id,
        "locked": not solution,
        "schema_version": 3,
        "solution": solution,
        "task": False,
    }
    if points is not None:
        metadata["points"] = points
    return make(source, metadata={"nbgrader": metadata})


def _cell_id(cell: NotebookNode, taken: dict[str, int]) -> str:
    """The grade id, else one made from the text."""
    if "nbgrader" in cell.metadata:
        return cell.metadata.nbgrader.grade_id
    return cell_id(cell.cell_type, cell.source, taken)


def _verify_imports(lesson: Lesson, cell: Cell, defined: set[str]) -> None:
    """What an exercise's text takes from its module must be imported by a cell above it."""
    source = stubs.source_of(lesson.exercises[cell.name].reference)
    missing = (free_names(source) | {"check"}) - defined - {cell.name}
    if missing:
        raise lesson.error(
            cell.line,
            f"exercise {cell.name!r} uses {', '.join(sorted(missing))}: "
            "import it in a cell above, because the notebook has nothing else.",
        )


def student_notebook(source: NotebookNode, name: str, config_file: Path | None) -> NotebookNode:
    """What nbgrader releases for ``source``, made in a throw-away directory.

    ``config_file`` is the course's ``nbgrader_config.py`` (its stubs are the students'). Nothing of
    the instructor's release directory or gradebook is touched.
    """
    config = Config()
    if config_file is not None and config_file.is_file():
        config = PyFileConfigLoader(config_file.name, str(config_file.parent)).load_config()
    config.GenerateAssignment.no_database = True
    config.SaveCells.enabled = False
    with tempfile.TemporaryDirectory(prefix="rlcourse-build-") as scratch:
        config.CourseDirectory.root = scratch
        path = Path(scratch, "source", name, f"{name}.ipynb")
        path.parent.mkdir(parents=True)
        path.write_text(dumps(source), encoding="utf-8")
        course = CourseDirectory(config=config)
        course.assignment_id = name
        _generate(GenerateAssignment(coursedir=course, config=config), name)
        released = Path(scratch, "release", name, f"{name}.ipynb")
        return nbformat.read(released, as_version=4)


def _generate(converter: GenerateAssignment, name: str) -> None:
    said = io.StringIO()
    logger = logging.Logger("rlcourse.build", logging.WARNING)
    logger.addHandler(logging.StreamHandler(said))
    converter.log = converter.coursedir.log = logger
    try:
        converter.start()
    except NbGraderException as error:
        reason = said.getvalue().strip() or error
        raise UserError(f"nbgrader could not release lesson {name}:\n{reason}") from error


def solved_notebook(lesson: Lesson, released: NotebookNode) -> NotebookNode:
    """The student's notebook with every exercise and question answered, not executed.

    Solutions lie side by side, so links to other lessons lose their folders.
    """
    notebook = nbformat.from_dict(released)
    for cell in notebook.cells:
        if cell.cell_type == "markdown":
            cell.source = re.sub(r"\]\(\.\./(\w+)/(\1\.ipynb)\)", r"](\2)", cell.source)
        grade_id = cell.metadata.get("nbgrader", {}).get("grade_id", "")
        if grade_id in lesson.exercises:
            cell.source = stubs.solution(lesson.exercises[grade_id].reference, marks=False)
        elif cell.metadata.get("nbgrader", {}).get("solution"):
            cell.source = lesson.answer(grade_id)
    return notebook


def dumps(notebook: NotebookNode) -> str:
    """The notebook as text: keys sorted, one trailing newline; equal notebooks, equal bytes."""
    return nbformat.writes(notebook).rstrip("\n") + "\n"
