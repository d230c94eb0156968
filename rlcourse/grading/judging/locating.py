"""Where in a notebook a function is written, if that is not where the exercise asks for it.

A check judges the cells above it, as a run from top to bottom would. If no cell above writes the
function and one below does, it is judged there instead; and a function that is judged nowhere is
never called unwritten.
"""

import re

from nbformat import NotebookNode

from rlcourse.grading.handing_in.submission import bound_in, is_demo
from rlcourse.grading.names import one_line
from rlcourse.grading.running.steps import Transcript

LONGEST_QUOTE = 60  # characters of a cell's first line


class FunctionCells:
    """A notebook's cells by the functions that they write."""

    def __init__(self, notebook: NotebookNode):
        self._cells = [
            (i, cell)
            for i, cell in enumerate(notebook.cells)
            if cell.cell_type == "code" and cell.source.strip()
        ]
        self._checks = {_grade_id(cell): i for i, cell in self._cells}

    def judged_after(self, name: str, check: int) -> int:
        """The cell after which `name` is judged: its check, or the last one below that binds it,
        where none above does."""
        binding = [i for i, c in self._cells if not is_demo(c) and name in bound_in(c.source)]
        above = [i for i in binding if i < check]
        return check if above or not binding else binding[-1]

    def elsewhere(self, name: str, grade_id: str, transcript: Transcript) -> str | None:
        """A sentence on a cell that writes the function and was not judged; None without one."""
        judged = self.judged_after(name, self._checks.get(grade_id, len(self._cells)))
        written = re.compile(rf"\bdef\s+{re.escape(name)}\b")
        for i, cell in self._cells:
            if _grade_id(cell) != name and (
                written.search(cell.source) or name in bound_in(cell.source)
            ):
                why = _why_not(cell, transcript) or (i > judged and "it is below the check")
                if why:
                    first = one_line(cell.source.strip().splitlines()[0], LONGEST_QUOTE)
                    begins = first.replace("`", "'")
                    return f"The cell that begins with `{begins}` also defines it, but {why}."
        return None


def _why_not(cell: NotebookNode, transcript: Transcript) -> str | None:
    """Why a cell's function was not judged; None if the cell was run like any other."""
    if is_demo(cell):
        return "grading skips demos"
    answer = transcript.cells.get(f"cell {cell.id}")
    if answer is None:
        return "it was not reached"
    if answer.error:
        return f"it ended in {one_line(f'{answer.error.type}: {answer.error.message}')}"
    return None


def _grade_id(cell: NotebookNode) -> str | None:
    return cell.metadata.get("nbgrader", {}).get("grade_id")
