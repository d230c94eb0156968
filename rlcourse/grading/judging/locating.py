"""Where in a notebook a function is written, if that is not where the exercise asks for it.

A check judges the cells above it, as a run from top to bottom would. If no cell above writes the
function and one below does, it is judged there instead; and a function that is judged nowhere is
never called unwritten.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass

from nbformat import NotebookNode

from rlcourse.grading.handing_in.submission import bound_in, is_demo
from rlcourse.grading.names import one_line
from rlcourse.grading.running.steps import Transcript

LONGEST_QUOTE = 60  # characters of a cell's first line


@dataclass(frozen=True)
class Place:
    """A cell that writes a function meant for another cell."""

    index: int
    step: str  # its name in a transcript
    begins: str
    passed_over: bool

    def sentence(self, transcript: Transcript, above: bool) -> str | None:
        """What became of it; None if it was run like any other, above the check."""
        cell = f"The cell that begins with `{self.begins}` also defines it"
        answer = transcript.cells.get(self.step)
        if self.passed_over:
            return f"{cell}, but grading skips demos: define it in a cell of your own."
        if answer and answer.error:
            message = f"{answer.error.type}: {answer.error.message}"
            return f"{cell}, but it ended in {one_line(message)}."
        if answer is None:
            return f"{cell}, but it was not reached."
        return None if above else f"{cell}, but below the check, which judges what is above it."


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
        check = self._checks.get(grade_id, len(self._cells))
        judged = self.judged_after(name, check)
        for place in self._others(name):
            if said := place.sentence(transcript, above=place.index <= judged):
                return said
        return None

    def _others(self, name: str) -> Iterator[Place]:
        written = re.compile(rf"\bdef\s+{re.escape(name)}\b")
        for i, cell in self._cells:
            if _grade_id(cell) != name and (
                written.search(cell.source) or name in bound_in(cell.source)
            ):
                first = one_line(cell.source.strip().splitlines()[0], LONGEST_QUOTE)
                yield Place(i, f"cell {cell.id}", first.replace("`", "'"), is_demo(cell))


def _grade_id(cell: NotebookNode) -> str | None:
    return cell.metadata.get("nbgrader", {}).get("grade_id")
