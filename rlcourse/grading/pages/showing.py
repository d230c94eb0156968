"""Pages that show submissions, for feedback and Formgrader, made in a process that may be lost.

A student's notebook is parsed, colored and sanitized on its way to a page, and each step takes as
long as the worst line makes it. So nbconvert runs in another process, with limits; if a notebook
exceeds them, its page holds what the grader wrote, its points and verdicts.
"""

import json
import re
from collections.abc import Iterator
from functools import partial
from html import escape
from pathlib import Path
from typing import Any

import nbformat
from jinja2 import DictLoader, pass_context
from jinja2.runtime import Context
from nbconvert.exporters import HTMLExporter
from nbconvert.filters.markdown_mistune import IPythonRenderer, MarkdownWithMath
from nbformat import NotebookNode
from nbformat.v4 import new_markdown_cell, new_output
from nbgrader.converters import GenerateFeedback
from nbgrader.converters.base import NbGraderException
from nbgrader.coursedir import CourseDirectory
from traitlets.config import Config

from rlcourse.grading.books.grades import waiting_in
from rlcourse.grading.confinement.disposable import Bounds, Disposable, Lost
from rlcourse.grading.pages.formulas import mathml
from rlcourse.grading.pages.markdown import harmless

BOUNDS = Bounds(cpu_seconds=30, seconds=120.0)
FORMGRADERS = "submission_id"  # in what Formgrader says of a page, and in no page of feedback
NAMES = {"student", "last_name", "first_name", "notebook_path"}  # what Formgrader says of a person
LARGEST_PAGE = 64 * 2**20  # characters
LONGEST_BRIEF = 2000  # characters of each text on the page of a notebook that is too large
BODY = '<div class="panel-body">'  # below the list
LISTED = re.compile(r'(<a href="#(?:check_)?([A-Za-z]\w*)">)[A-Z][a-z -]+</a>(?= \(Score: )')
TOO_MUCH = (
    "**This notebook is too large to be shown in full** ({why}). Below are the points and "
    "verdicts; for the rest, open the notebook that was handed in."
)


class FormulaRenderer(IPythonRenderer):
    """nbconvert's Markdown, with formulas drawn."""

    def inline_math(self, body: str) -> str:
        return mathml(body)

    def block_math(self, body: str) -> str:
        return mathml(body, "block")

    def latex_environment(self, name: str, body: str) -> str:
        return mathml(f"\\begin{{{name}}}{body}\\end{{{name}}}", "block")


class FormulaExporter(HTMLExporter):
    """nbconvert's page of a notebook, without MathJax but with formulas."""

    def __init__(self, **kwargs):
        without_mathjax = {"mathjax.html.j2": "{%- macro mathjax(url='') -%}{%- endmacro -%}"}
        super().__init__(extra_loaders=[DictLoader(without_mathjax)], **kwargs)

    @pass_context
    def markdown2html(self, context: Context, source: str) -> str:
        renderer = FormulaRenderer(
            escape=False,
            attachments=context.get("cell", {}).get("attachments"),
            anchor_link_text=self.anchor_link_text,
            exclude_anchor_links=self.exclude_anchor_links,
            **self.lexer_options,
        )
        return MarkdownWithMath(renderer=renderer).render(source)


class Page:
    """The work: a notebook's path in, nbconvert's page out."""

    def __init__(self, config: Config, preprocessors: tuple[type, ...]):
        self.config, self.preprocessors = config, preprocessors

    def prepare(self, warm_up_keys: Any) -> None:
        """Nothing is kept from one page to the next."""

    def do(self, request: bytes, line: Any) -> dict:
        path, resources, too_much = json.loads(request)
        exporter = FormulaExporter(config=self.config)
        for preprocessor in self.preprocessors:
            exporter.register_preprocessor(preprocessor)
        exporter.register_preprocessor(without_markup)
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
        page = with_names(page)
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
    """The cells that answer questions graded by a person."""
    for cell in notebook.cells:
        marks = cell.metadata.get("nbgrader", {})
        if cell.cell_type == "markdown" and marks.get("grade") and marks.get("solution"):
            yield marks["grade_id"], cell


def with_names(page: str) -> str:
    """A page of feedback whose list of scores names exercises and questions, where nbgrader says
    "Test cell" of each. Only what stands above the notebook is changed."""
    head, body, rest = page.partition(BODY)
    return LISTED.sub(r"\1\2</a>", head) + body + rest if body else page


def without_markup(notebook: NotebookNode, resources: dict) -> tuple:
    """The page's other texts as text: the templates write names as they are, and comments as
    Markdown that may hold HTML."""
    for name in NAMES & {*resources}:
        resources[name] = escape(str(resources[name] or ""))
    for cell in notebook.cells:
        marks = cell.metadata.get("nbgrader", {})
        if marks.get("comment"):
            marks["comment"] = harmless(str(marks["comment"]))
    return notebook, resources


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
    """The verdicts of a notebook, each cut, after the reason."""
    graded = [c for c in notebook.cells if c.metadata.get("nbgrader", {}).get("grade")]
    for cell in graded:
        cell.source = f"({len(cell.source)} characters)"
        if cell.cell_type == "code":
            verdicts = [
                o.data["text/plain"] for o in cell.outputs if "text/plain" in o.get("data", {})
            ]
            cell.outputs = [
                new_output("display_data", data={"text/plain": str(said)[:LONGEST_BRIEF]})
                for said in verdicts[:2]
            ]
    notebook.cells = [new_markdown_cell(TOO_MUCH.format(why=why)), *graded]
    return notebook


class IsolatedExporter(HTMLExporter):
    """nbconvert's exporter to HTML with the same settings, which never opens a notebook itself."""

    def __init__(self, **kwargs):
        self._also: list[type] = []
        self._process: Disposable | None = None
        super().__init__(**kwargs)
        self._also.clear()  # what the settings register is in there, too

    def register_preprocessor(self, preprocessor, enabled=False):
        if isinstance(preprocessor, type):
            self._also.append(preprocessor)
        return super().register_preprocessor(preprocessor, enabled)

    def from_filename(self, filename, resources=None, **kwargs):
        """(page, resources). ``NbGraderException`` if not even its points can be shown."""
        failed = ""
        for _ in range(2):
            found = self._made(filename, resources or {}, failed)
            if "page" in found:
                if failed:
                    self.log.warning("%s is too large to be shown in full (%s)", filename, failed)
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
    """nbgrader's pages of feedback; one that cannot be made is reported, and the rest are made."""

    exporter: IsolatedExporter

    def _exporter_class_default(self):
        return IsolatedExporter

    def start(self) -> None:
        """Make the pages. They show penalties, which points by hand and extensions have changed
        since, so these are brought up to date first. Who still lacks points is said at the end of
        the log, where people look."""
        waiting = waiting_in(self.coursedir)
        Path(self.coursedir.format_path(self.coursedir.feedback_directory, ".", ".")).mkdir(
            mode=0o700, parents=True, exist_ok=True
        )
        try:
            super().start()
        finally:
            if waiting:
                self.log.warning(
                    "Points by hand are still to be given or confirmed for %s. Their pages show "
                    "the points so far, and 0 for written answers.",
                    ", ".join(waiting),
                )
            exporter = self._trait_values.get("exporter")  # nbgrader makes it only then
            if isinstance(exporter, IsolatedExporter):
                exporter.close()
