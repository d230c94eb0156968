"""Which answers are as they were when a person gave points: those need nobody's second look.

A person read the autograded notebook, so the next one is compared with it, before it is replaced.
"""

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any


def unchanged(before: Path, notebook) -> set[str]:
    """Names of the cells with points in `notebook` that were judged in the same form before."""
    try:
        old = _judged(json.loads(before.read_text("utf-8"))["cells"])
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return set()  # nothing to compare with, so a person looks again
    return {name for name, form in _judged(notebook.cells).items() if old.get(name) == form}


def _judged(cells: Iterable[dict]) -> dict[str, Any]:
    """By name, the points that a cell has and the text that they are for.

    A written answer may go on in cells that the student added below it. A function may be written
    anywhere, so the text of a check is all code.
    """
    found: dict[str, tuple[float, list[str]]] = {}
    code: list[str] = []
    written: list[str] = []
    for cell in cells:
        about, text = cell["metadata"].get("nbgrader", {}), "".join(cell["source"])
        if cell["cell_type"] == "code":
            code.append(text)
        if "rlcourse" not in cell["metadata"]:
            written = []  # the answer above ends here
        if about.get("grade"):
            written = [text]
            judged = code if cell["cell_type"] == "code" else written
            found[about["grade_id"]] = (float(about["points"]), judged)
        elif written:
            written.append(text)
    return found
