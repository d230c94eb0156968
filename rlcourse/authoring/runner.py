"""Run the checks of a student's notebook and tabulate them; ``rlcourse check`` is this module."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from nbformat import NotebookNode
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook

from rlcourse.checks.telling.result import right_once
from rlcourse.errors import UserError

from .kernel import error_of, run_cells
from .notebook_file import FileCell, NotANotebook, read_notebook_file
from .verdicts import check_output

CHECK_TIMEOUT = 60.0  # seconds per cell; cells that train are demo cells, which are not run


@dataclass(frozen=True)
class Row:
    """One exercise of the notebook. ``earned`` and ``points`` are points, ``score`` in [0, 1]."""

    exercise: str
    status: str  # passed, partly right, wrong, not written yet, or another one in words
    score: float
    points: float
    message: str = ""
    mistake: str | None = None  # by its name, where it has one

    @property
    def earned(self) -> float:
        return self.score * self.points

    def as_json(self) -> dict[str, Any]:
        return {
            "exercise": self.exercise,
            "status": self.status,
            "points": self.earned,
            "possible": self.points,
            "mistake": self.mistake,
            "message": self.message,
        }


@dataclass(frozen=True)
class Report:
    """All exercises of a notebook, in its order."""

    notebook: Path
    rows: tuple[Row, ...]

    @property
    def earned(self) -> float:
        return sum(row.earned for row in self.rows)

    @property
    def points(self) -> float:
        return sum(row.points for row in self.rows)

    @property
    def passed(self) -> bool:
        return all(row.status == "passed" for row in self.rows)

    @property
    def percent(self) -> float:
        """Of the points that its checks give; 100 where they give none and all pass."""
        if not self.points:
            return 100.0 if self.passed else 0.0
        return 100 * self.earned / self.points

    def as_json(self) -> dict[str, Any]:
        return {
            "notebook": str(self.notebook),
            "points": self.earned,
            "possible": self.points,
            "percent": self.percent,
            "passed": self.passed,
            "exercises": [row.as_json() for row in self.rows],
        }

    def __str__(self) -> str:
        """The table, and below it what the checks said about answers that are wrong."""
        width = max(len(name) for name in ("total", *(row.exercise for row in self.rows)))
        lines = [
            f"{row.exercise:{width}}  {row.earned:4.1f} / {row.points:<4g} {row.status}"
            for row in self.rows
        ]
        lines.append(f"{'total':{width}}  {self.earned:4.1f} / {self.points:g}")
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
        skip=is_demo,
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
    except IsADirectoryError:
        raise UserError(
            f"{path} is a directory: give a notebook, a file ending in .ipynb."
        ) from None
    except NotANotebook as error:
        raise UserError(f"{path} cannot be read: it {error}.") from None
    except OSError as error:
        raise UserError(f"{path} cannot be read: {error.strerror}.") from error
    return new_notebook(cells=[_node(cell) for cell in cells], metadata=metadata)


def _node(cell: FileCell) -> NotebookNode:
    tags = cell.metadata.get("tags")
    metadata: dict = {"tags": tags if isinstance(tags, list) else []}
    if cell.nbgrader:
        metadata["nbgrader"] = cell.nbgrader
    make = new_code_cell if cell.kind == "code" else new_markdown_cell
    return make(cell.source, metadata=metadata)


def is_demo(cell: NotebookNode) -> bool:
    """Whether a cell trains or plots; such cells never decide a mark."""
    graded = "nbgrader" in cell.metadata
    return not graded and "demo" in cell.metadata.get("tags", [])


def _is_check(cell: NotebookNode) -> bool:
    nbgrader = cell.metadata.get("nbgrader", {})
    return bool(nbgrader.get("grade") and cell.cell_type == "code")


def _row(cell: NotebookNode, died: int | None, index: int) -> Row:
    name = cell.metadata.nbgrader.grade_id.removeprefix("check_")
    points = float(cell.metadata.nbgrader.get("points", 0))
    if died is not None and index >= died:
        reason = "the kernel died here" if index == died else "not run: the kernel died before"
        return Row(name, reason, 0.0, points)
    verdict = check_output(cell)
    if verdict is None:
        reason = error_of(cell)
        return Row(name, reason or "the check cell shows no result", 0.0, points)
    status = _status(verdict)
    return Row(name, status, verdict.score, points, verdict.message, verdict.mistake)


def _status(verdict) -> str:
    if verdict.passed:
        return right_once(verdict.once) if verdict.once else "passed"
    if verdict.borrowed:
        return "the library's own"
    if verdict.unwritten:
        return "not written yet"
    return "partly right" if verdict.score > 0 else "wrong"
