"""Read a lesson: one Jupytext Markdown file, ``lessons/NN_topic/lesson.md``, into a list of cells.

A lesson is ordinary Markdown with Python cells. Five marks, all in cell metadata, say what the
builder has to fill in:

- ```` ```python exercise="reinforce_loss" ```` with an empty body: the place of an exercise;
- ``<!-- #region question="why_sum" points=2 -->``: a question that a person grades;
- ``<!-- #region answer="why_sum" -->``: its model answer, shown only in the solutions;
- ``<!-- #region rubric="why_sum" -->``: how its points split, a list such as ``- (1.5) Says why.``,
  shown only to graders, below the model answer;
- ```` ```python tags=["demo"] ````: a cell that trains or plots, not run by checks and grading.

Every mistake that an author can make raises ``UserError`` with the file and the line.
"""

import ast
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import jupytext

from rlcourse.authoring import recording
from rlcourse.authoring.cells import without_magics
from rlcourse.authoring.filling import Unfilled, fill
from rlcourse.authoring.mentions import with_links
from rlcourse.courses import Course, current
from rlcourse.errors import UserError

TAGS = {"demo", "setup", "optional", recording.TAG}
KINDS = {"exercise": "code", "question": "markdown", "answer": "markdown", "rubric": "markdown"}
RESERVED = re.compile(r"(BEGIN|END) (SOLUTION|HIDDEN TESTS|MARK SCHEME)|AUTOTEST")


@dataclass(frozen=True)
class Cell:
    """One cell of a lesson. ``kind`` is code, markdown, exercise, question, answer or rubric.

    ``line`` is where its fence or region opens; for plain Markdown, its first line.
    """

    kind: str
    source: str
    line: int
    name: str = ""
    points: float = 0.0
    tags: tuple[str, ...] = ()


@dataclass(frozen=True)
class Lesson:
    """A parsed lesson file. ``name`` is NN_topic, ``exercises`` maps names to declarations."""

    path: Path
    title: str
    cells: tuple[Cell, ...]
    exercises: dict

    @property
    def name(self) -> str:
        return self.path.parent.name

    def error(self, line: int, sentence: str) -> UserError:
        return UserError(f"{self.path}:{line}: {sentence}")

    def answer(self, question: str) -> str:
        """The model answer of a question."""
        return next(c.source for c in self.cells if c.kind == "answer" and c.name == question)

    def rubric(self, question: str) -> str:
        """How the points of a question split; "" if the lesson does not say."""
        found = (c.source for c in self.cells if c.kind == "rubric" and c.name == question)
        return next(found, "")


def read_lesson(path: Path, registry: Iterable, course: Course | None = None) -> Lesson:
    """Parse and verify the lesson at ``path``, and fill in what it says of itself and ``course``.

    ``course`` (default: the one that the file belongs to) may give other points to its questions.
    ``registry`` holds the declared exercises (``.name``, ``.lesson``, ``.reference`` …) of all
    lessons. Raises ``UserError`` with file and line for anything an author has to fix.
    """
    path = Path(path)
    text = path.read_text(encoding="utf-8")
    course = course or current(path.parent)
    registry = {exercise.name: exercise for exercise in registry}
    notebook = jupytext.reads(text, fmt="md")
    cells = tuple(
        replace(cell, points=float(course.points.get(cell.name, cell.points)))
        for cell in _cells(path, text, notebook)
    )
    named = {c.name: registry[c.name] for c in cells if c.kind == "exercise" and c.name in registry}
    heading = next((c.source for c in cells if c.kind == "markdown"), "").partition("\n")[0]
    title = notebook.metadata.get("title") or heading.removeprefix("# ").strip()
    lesson = Lesson(path, title, cells, named)
    if not heading.startswith("# "):
        raise lesson.error(1, "a lesson begins with its title, a line such as '# Policy gradient'.")
    _verify_names(lesson, registry)
    _verify_code(lesson)
    recording.verify_opening(lesson)
    return replace(lesson, cells=tuple(_filled_in(lesson, course)))


def _filled_in(lesson: Lesson, course: Course) -> Iterator[Cell]:
    """The cells, with counts and tables in their prose."""
    asked = {cell.name: cell.points for cell in lesson.cells if cell.kind == "question"}
    for cell in lesson.cells:
        if cell.kind in ("markdown", "question"):
            try:
                source = fill(cell.source, lesson.exercises, asked, course)
            except Unfilled as error:
                raise lesson.error(cell.line, str(error)) from None
            cell = replace(cell, source=with_links(source, lesson.name, course))
        yield cell


def _cells(path: Path, text: str, notebook) -> Iterator[Cell]:
    lines, start = text.splitlines(), 0
    for raw in notebook.cells:
        metadata = {k: v for k, v in raw.metadata.items() if k != "lines_to_next_cell"}
        fenced = raw.cell_type == "code" or bool(metadata)
        start = _first_line(lines, start, raw, fenced)
        yield _cell(path, start + 1, raw, metadata)
        start += len(raw.source.splitlines()) + 2 * fenced


def _first_line(lines: list[str], start: int, raw, fenced: bool) -> int:
    """Index of the line where a cell begins, looking from ``start``; Jupytext does not keep it."""
    opening = "```" if raw.cell_type == "code" else "<!-- #" if fenced else raw.source
    opening = opening.partition("\n")[0]
    return next((i for i in range(start, len(lines)) if lines[i].startswith(opening)), start)


def _cell(path: Path, line: int, raw, metadata: dict) -> Cell:
    def error(sentence: str) -> UserError:
        return UserError(f"{path}:{line}: {sentence}")

    marks = [key for key in metadata if key in KINDS]
    kind = marks[0] if marks else raw.cell_type
    allowed = {"question": {"question", "points"}, "code": {"tags"}, "markdown": set()}
    unknown = set(metadata) - allowed.get(kind, {kind})
    if unknown:
        raise error(
            f"unknown cell metadata {', '.join(sorted(unknown))}: use exercise, question and "
            "points, answer, rubric, or tags."
        )
    tags = tuple(metadata.get("tags", ()))
    if set(tags) - TAGS:
        raise error(f"unknown tag in {list(tags)}: use one of {', '.join(sorted(TAGS))}.")
    if marks and raw.cell_type != KINDS[kind]:
        raise error(f"{kind}= belongs on a {KINDS[kind]} cell.")
    if kind == "exercise" and raw.source.strip():
        raise error("an exercise cell is empty: the builder writes it from the library's source.")
    points = metadata.get("points", 0)
    if kind == "question" and not (isinstance(points, int | float) and points > 0):
        raise error('a question needs points, as in question="why_sum" points=2.')
    if RESERVED.search(raw.source):
        raise error("a lesson must not contain nbgrader's own marks; the builder writes them.")
    return Cell(kind, raw.source, line, str(metadata.get(kind, "")), float(points), tags)


def _verify_names(lesson: Lesson, registry: dict) -> None:
    """Every exercise known and placed once, every question answered once."""
    seen: dict[tuple[str, str], int] = {}
    for cell in lesson.cells:
        if not cell.name:
            continue
        if cell.kind == "exercise" and cell.name not in registry:
            raise lesson.error(cell.line, f"there is no exercise named {cell.name!r}.")
        # One name space: exercises, their checks and questions all become nbgrader grade ids.
        key = (cell.kind if cell.kind in ("answer", "rubric") else "id", cell.name)
        if key in seen:
            raise lesson.error(cell.line, f"{cell.name!r} is already on line {seen[key]}.")
        seen[key] = cell.line
    asked = {c.name: c.line for c in lesson.cells if c.kind == "question"}
    answered = {c.name: c.line for c in lesson.cells if c.kind == "answer"}
    split = {c.name: c.line for c in lesson.cells if c.kind == "rubric"}
    for name in sorted(asked.keys() ^ answered.keys() | split.keys() - asked.keys()):
        line = asked.get(name) or answered.get(name) or split[name]
        lacking = "a model answer" if name in asked else "a question"
        raise lesson.error(line, f"{name!r} lacks {lacking}.")


def _verify_code(lesson: Lesson) -> None:
    """Every Python cell compiles, so that a typing error is found before any kernel starts."""
    for cell in lesson.cells:
        if cell.kind != "code":
            continue
        if cell.source.startswith("%%"):
            language = cell.source[2:].split()[0]
            raise lesson.error(
                cell.line,
                f"a ```{language} block would be run as a cell: write ```text, or put it "
                "between <!-- #region --> and <!-- #endregion -->.",
            )
        try:
            ast.parse(without_magics(cell.source))
        except SyntaxError as error:
            line = cell.line + (error.lineno or 1)
            raise lesson.error(line, f"this cell is not valid Python: {error.msg}.") from error
