"""Run the checks of a student's notebook and tabulate them; ``rlcourse check`` is this module."""

from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from nbformat import NotebookNode
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook

from rlcourse.checks.telling.result import right_once
from rlcourse.errors import UserError

from .kernel import error_of, run_cells, verdict_of
from .notebook_file import FileCell, NotANotebook, read_notebook_file

CHECK_TIMEOUT = 60.0  # seconds per cell; cells that train are demo cells, which are not run


@dataclass(frozen=True)
class Row:
    """One exercise of the notebook: the ``points`` that it has earned, of the ``possible`` ones."""

    exercise: str
    status: str  # passed, partly right, wrong, not written yet, or another one in words
    points: float
    possible: float
    message: str = ""
    mistake: str | None = None  # by its name, where it has one


@dataclass(frozen=True)
class Report:
    """All exercises of a notebook, in its order."""

    notebook: Path
    rows: tuple[Row, ...]

    @property
    def points(self) -> float:
        return sum(row.points for row in self.rows)

    @property
    def possible(self) -> float:
        return sum(row.possible for row in self.rows)

    @property
    def passed(self) -> bool:
        return all(row.status == "passed" for row in self.rows)

    @property
    def percent(self) -> float:
        """Of the points that its checks give; 100 where they give none and all pass."""
        if not self.possible:
            return 100.0 if self.passed else 0.0
        return 100 * self.points / self.possible

    def as_json(self) -> dict[str, Any]:
        facts = {name: getattr(self, name) for name in ("points", "possible", "percent", "passed")}
        return {"notebook": str(self.notebook), **facts, "exercises": list(map(asdict, self.rows))}

    def __str__(self) -> str:
        """The table, and below it what the checks said about answers that are wrong."""
        total = Row("total", "", self.points, self.possible)
        width = max(len(row.exercise) for row in (total, *self.rows))
        lines = [
            f"{row.exercise:{width}}  {row.points:4.1f} / {row.possible:<4g} {row.status}".rstrip()
            for row in (*self.rows, total)
        ]
        silent = ("passed", "not written yet")
        wrong = [row for row in self.rows if row.message and row.status not in silent]
        return "\n".join([*lines, *(f"\n{row.message}" for row in wrong)])


def check_notebook(
    notebook: Path | str, *, timeout: float | None = CHECK_TIMEOUT, progress: bool = True
) -> Report:
    """Run a notebook in a fresh kernel, demo cells left out, and report on every check cell.

    The file is only read. A cell that raises, or runs longer than ``timeout`` seconds, does not
    stop the others. Raises ``UserError`` where the notebook is missing, unreadable or has no check.
    """
    path = Path(notebook)
    node = read_notebook(path)
    if not any(map(_is_check, node.cells)):
        raise UserError(f"{path} has no check cells: give a notebook of the course.")
    died = run_cells(
        node,
        path.resolve().parent,
        timeout=timeout,
        stop_on_error=False,
        skip_tag="demo",
        label=path.stem,
        progress=progress,
    )
    rows = (_row(cell, died, i) for i, cell in enumerate(node.cells) if _is_check(cell))
    return Report(path, tuple(rows))


def read_notebook(path: Path) -> NotebookNode:
    """The notebook at ``path``, without outputs, or a ``UserError`` that says why there is none.

    Every file that grading reads is read here, too: by the same ``notebook_file``.
    """
    try:
        cells, metadata = read_notebook_file(path.read_bytes())
    except FileNotFoundError:
        inside = path.with_suffix("") / path.name  # where the copies of students are
        hint = f" Did you mean {inside}?" if inside.is_file() else ""
        raise UserError(f"there is no notebook {path}.{hint}") from None
    except NotANotebook as error:
        raise UserError(f"{path} cannot be read: it {error}.") from None
    except OSError as error:
        raise UserError(f"{path} cannot be read: {error.strerror}.") from error
    return new_notebook(cells=[_node(cell) for cell in cells], metadata=metadata)


def _node(cell: FileCell) -> NotebookNode:
    """The cell; a graded one without tags, since no tag keeps it from running."""
    tags = cell.metadata.get("tags")
    metadata: dict = {"tags": tags if isinstance(tags, list) else []}
    if cell.nbgrader:
        metadata = {"nbgrader": cell.nbgrader}
    make = new_code_cell if cell.kind == "code" else new_markdown_cell
    return make(cell.source, metadata=metadata)


def _is_check(cell: NotebookNode) -> bool:
    nbgrader = cell.metadata.get("nbgrader", {})
    return bool(nbgrader.get("grade") and cell.cell_type == "code")


def _row(cell: NotebookNode, died: int | None, index: int) -> Row:
    name = cell.metadata.nbgrader.grade_id.removeprefix("check_")
    points = float(cell.metadata.nbgrader.get("points", 0))
    if died is not None and index >= died:
        reason = "the kernel died here" if index == died else "not run: the kernel died before"
        return Row(name, reason, 0.0, points)
    verdict = verdict_of(cell)
    if verdict is None:
        return Row(name, error_of(cell) or "the check cell shows no result", 0.0, points)
    earned = verdict["score"] * points
    return Row(name, _status(verdict), earned, points, verdict["message"], verdict.get("mistake"))


def _status(verdict: dict) -> str:
    if verdict["passed"]:
        return right_once(verdict["once"]) if verdict.get("once") else "passed"
    if verdict.get("borrowed"):
        return "the library's own"
    if verdict.get("unwritten"):
        return "not written yet"
    return "partly right" if verdict["score"] > 0 else "wrong"
