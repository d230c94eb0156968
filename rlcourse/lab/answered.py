"""Whether a notebook holds answers, from the checksums that its release left in its cells."""

import hashlib
import json
from pathlib import Path


def answered_cells(path: Path) -> list[str]:
    """Names of the answer cells whose text is no longer the released one; a file that is not a
    notebook has none.

    The checksum is nbgrader's, computed here so that nbgrader need not be imported, or installed.
    """
    try:
        cells = json.loads(path.read_text("utf-8"))["cells"]
        return [name for cell in cells if (name := _answered(cell))]
    except (OSError, ValueError, TypeError, KeyError, AttributeError):
        return []


def _answered(cell: dict) -> str | None:
    facts = cell["metadata"].get("nbgrader") or {}
    if not facts.get("solution") or "checksum" not in facts:
        return None
    return None if facts["checksum"] == released_checksum(cell) else facts["grade_id"]


def released_checksum(cell: dict) -> str:
    """nbgrader's checksum of a cell as it is now: of its text and its points."""
    facts, source = cell["metadata"]["nbgrader"], cell["source"]
    parts = [
        source if isinstance(source, str) else "".join(source),
        cell["cell_type"],
        *(str(bool(facts[mark])) for mark in ("grade", "solution", "locked")),
        facts["grade_id"],
    ]
    if facts["grade"]:
        parts.append(str(float(facts["points"])))
    return hashlib.md5("".join(parts).encode(), usedforsecurity=False).hexdigest()
