"""Pages that show submissions, feedback and Formgrader's, made in a process that may be lost.

A notebook of a student is parsed, colored and sanitized on its way to a page, and each of that
takes as long as its worst line makes it. So nbconvert does it elsewhere, with limits; of a notebook
that is beyond them a page is made of what the grader wrote, its points and verdicts.
"""

import json
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import nbformat
from nbconvert.exporters import HTMLExporter
from nbformat import NotebookNode
from nbformat.v4 import new_markdown_cell
from nbgrader.converters import GenerateFeedback
from nbgrader.converters.base import NbGraderException
from nbgrader.coursedir import CourseDirectory
from traitlets.config import Config

from rlcourse.grading.disposable import Bounds, Channel, Disposable, Lost
from rlcourse.grading.formulas import FormulaExporter

BOUNDS = Bounds(cpu_seconds=30, seconds=120.0)
FORMGRADERS = "submission_id"  # in what Formgrader says of a page, and in no page of feedback
LARGEST_PAGE = 64 * 2**20  # characters
LONGEST_BRIEF = 2000  # characters of each text on the page of a notebook that is too much
TOO_MUCH = (
    "**This notebook is too much to be shown whole** ({why}). Below are points and verdicts; "
    "the notebook itself is what was handed in."
)


class Page:
    """The work: a notebook's path in, nbconvert's page out."""

    def __init__(self, config: Config, preprocessors: tuple[type, ...]):
        self.config, self.preprocessors = config, preprocessors

    def prepare(self, hints: Any) -> None:
        """Nothing is kept from one page to the next."""

    def do(self, request: bytes, ask: Channel) -> dict:
        path, resources, too_much = json.loads(request)
        exporter = FormulaExporter(config=self.config)
        for preprocessor in self.preprocessors:
            exporter.register_preprocessor(preprocessor)
        if FORMGRADERS in resources:
            answers = self._model_answers(Path(path).stem)
            exporter.register_preprocessor(partial(show_beside, answers))
        try:
            if too_much:
                notebook = brief(nbformat.read(path, as_version=4), too_much)
                page, resources = exporter.from_notebook_node(notebook, resources)
            else:
                page, resources = exporter.from_filename(path, resources)
        except Exception as error:  # MemoryError among them
            return {"failed": type(error).__name__}
        if len(page) > LARGEST_PAGE:
            return {"failed": "a page of too many characters"}
        return {"page": page, "extension": resources["output_extension"]}

    def _model_answers(self, lesson: str) -> dict[str, str]:
        """{question: model answer} of the instructor's notebook, as far as it can be read."""
        course = CourseDirectory(config=self.config)
        directory = Path(course.format_path(course.source_directory, ".", lesson))
        try:
            notebook = nbformat.read(directory / f"{lesson}.ipynb", as_version=4)
        except Exception:
            return {}
        return {grade_id: cell.source for grade_id, cell in _questions(notebook)}


def _questions(notebook: NotebookNode) -> Iterator[tuple[str, NotebookNode]]:
    """The cells in which a question is answered that a person grades."""
    for cell in notebook.cells:
        marks = cell.metadata.get("nbgrader", {})
        if cell.cell_type == "markdown" and marks.get("grade") and marks.get("solution"):
            yield marks["grade_id"], cell


def show_beside(answers: dict[str, str], notebook: NotebookNode, resources: dict) -> tuple:
    """The notebook with a model answer above each answer that a person grades."""
    models = {id(cell): answers[name] for name, cell in _questions(notebook) if name in answers}
    cells = []
    for cell in notebook.cells:
        if id(cell) in models:
            quoted = models[id(cell)].replace("\n", "\n> ")
            cells.append(new_markdown_cell(f"**Model answer** (for graders only)\n\n> {quoted}"))
        cells.append(cell)
    notebook.cells = cells
    return notebook, resources


def brief(notebook: NotebookNode, why: str) -> NotebookNode:
    """What is graded of a notebook, each text of it cut, and first the reason."""
    kept = [new_markdown_cell(TOO_MUCH.format(why=why))]
    for cell in notebook.cells:
        if not cell.metadata.get("nbgrader", {}).get("grade"):
            continue
        if cell.cell_type == "code":
            cell.source = ""
            cell.outputs = [o for o in cell.outputs[:2] if "text/plain" in o.get("data", {})]
            for output in cell.outputs:
                output.data = {"text/plain": str(output.data["text/plain"])[:LONGEST_BRIEF]}
        elif len(cell.source) > LONGEST_BRIEF:
            cell.source = f"({len(cell.source)} characters)"
        kept.append(cell)
    notebook.cells = kept
    return notebook


class IsolatedExporter(HTMLExporter):
    """nbconvert's exporter to HTML with the same settings, which never opens a notebook itself."""

    def __init__(self, **kwargs):
        self._also: list[type] = []
        self._process: Disposable | None = None
        super().__init__(**kwargs)
        self._also.clear()  # what the settings name is registered there, too

    def register_preprocessor(self, preprocessor, enabled=False):
        if isinstance(preprocessor, type):
            self._also.append(preprocessor)
        return super().register_preprocessor(preprocessor, enabled)

    def from_filename(self, filename, resources=None, **kwargs):
        """(page, resources). ``NbGraderException`` where not even its points can be shown."""
        failed = ""
        for _ in range(2):
            found = self._made(filename, resources or {}, failed)
            if "page" in found:
                if failed:
                    self.log.warning("%s is too much to be shown whole (%s)", filename, failed)
                extension = {"output_extension": found["extension"]}
                return found["page"], {**(resources or {}), **extension}
            failed = found["failed"]
        raise NbGraderException(f"{filename} cannot be shown: {failed}")

    def _made(self, filename: str, resources: dict, too_much: str) -> dict:
        if self._process is None:
            work = Page(Config(self.config), tuple(self._also))
            self._process = Disposable(work, BOUNDS, threads=True)
        try:
            return self._process.run(json.dumps([str(filename), resources, too_much]).encode())
        except Lost as lost:
            return {"failed": "it takes too long" if lost.by_time else f"status {lost.status}"}

    def close(self) -> None:
        """End the process that makes the pages."""
        if self._process is not None:
            self._process.close()
            self._process = None


class IsolatedFeedback(GenerateFeedback):
    """nbgrader's pages of feedback; one that cannot be made is named, and the others are."""

    exporter: IsolatedExporter

    def _exporter_class_default(self):
        return IsolatedExporter

    def start(self) -> None:
        try:
            super().start()
        finally:
            if isinstance(getattr(self, "exporter", None), IsolatedExporter):
                self.exporter.close()
