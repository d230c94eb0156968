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

    A written answer may go on in cells that the student added, and a function may be written
    anywhere, so the text of a check is all code.
    """
    found: dict[str, tuple[float, bool, list[str]]] = {}
    of_kind = {True: list[str](), False: list[str]()}  # whether it is code: all that was written
    for cell in cells:
        about, text = cell["metadata"].get("nbgrader", {}), "".join(cell["source"])
        code = cell["cell_type"] == "code"
        if code or "rlcourse" in cell["metadata"]:
            of_kind[code].append(text)
        if about.get("grade"):
            own = [] if code else [text]
            found[about["grade_id"]] = (float(about["points"]), code, own)
    return {name: (points, own, of_kind[code]) for name, (points, code, own) in found.items()}
