"""A lesson's graded cells and points in the gradebook, entered by nbgrader's own steps."""

from pathlib import Path

import nbformat
from nbformat import NotebookNode
from nbgrader.coursedir import CourseDirectory
from nbgrader.preprocessors import ClearSolutions, ComputeChecksums, SaveCells
from traitlets.config import Config

from rlcourse.errors import UserError
from rlcourse.grading.books.opening import open_gradebook


def enter_lesson(
    directory: CourseDirectory, lesson: str, source: NotebookNode, config: Config, url: str = ""
) -> None:
    """Make the lesson's cells and points known to the gradebook at `url`, by default the course's.

    Raises:
        UserError: submissions have points for other cells; nothing is changed.
    """
    with open_gradebook(directory, url) as gradebook:
        gradebook.update_or_create_assignment(lesson)
    where = {"notebook": lesson, "assignment": lesson, "db_url": url or directory.db_url}
    notebook, resources = nbformat.from_dict(source), {"nbgrader": where}
    try:
        for step in (ClearSolutions, ComputeChecksums, SaveCells):
            notebook, resources = step(config=config).preprocess(notebook, resources)
    except RuntimeError as error:
        raise UserError(
            f"{lesson} no longer has the questions and exercises for which submissions have points "
            f"({error}): put back what is gone (with 0 under [points] in course.toml, it does not "
            "count), add what is new to another lesson, and build again"
        ) from None


def enter_generated(directory: CourseDirectory, config: Config) -> None:
    """The same for the lesson that nbgrader is about to generate; this imports no torch."""
    lesson = directory.assignment_id
    path = Path(directory.format_path(directory.source_directory, ".", lesson), f"{lesson}.ipynb")
    if path.is_file():  # of what is missing, nbgrader itself says so
        enter_lesson(directory, lesson, nbformat.read(path, as_version=4), config)
