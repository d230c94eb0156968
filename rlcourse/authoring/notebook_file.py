"""The cells of a notebook file, whatever program wrote it: for ``rlcourse check`` and for grading.

Only the text and the metadata of the cells are read. So nothing that the format asks for besides
can be missing or wrong: ids, the version, outputs. PowerShell writes UTF-16, and some editors a
byte order mark.
"""

import codecs
import json
from dataclasses import dataclass
from typing import Any

ENCODINGS = {codecs.BOM_UTF16_LE: "utf-16", codecs.BOM_UTF16_BE: "utf-16"}


class NotANotebook(ValueError):
    """Why a file is no notebook: the rest of a sentence that begins with its name."""


@dataclass(frozen=True)
class FileCell:
    """A cell as a file has it: ``kind`` is code, markdown or raw, ``id`` may be ""."""

    kind: str
    source: str
    metadata: dict[str, Any]
    id: str

    @property
    def nbgrader(self) -> dict[str, Any]:
        """What nbgrader noted, {} if there is nothing with a name."""
        noted = _mapping(self.metadata.get("nbgrader"))
        return noted if isinstance(noted.get("grade_id"), str) else {}


def read_notebook_file(data: bytes) -> tuple[list[FileCell], dict[str, Any]]:
    """The cells of the file, and the notebook's metadata.

    Raises:
        NotANotebook: the file is no notebook of format 3 or 4.
    """
    encoding = next((ENCODINGS[mark] for mark in ENCODINGS if data.startswith(mark)), "utf-8-sig")
    try:
        notebook = json.loads(data.decode(encoding))
    except UnicodeDecodeError:
        raise NotANotebook("is not a notebook: it is not text") from None
    except (ValueError, RecursionError):
        raise NotANotebook("is not complete JSON") from None
    cells = [_cell(cell) for cell in _cells_of(notebook)]
    return cells, _mapping(notebook.get("metadata"))


def _cells_of(notebook: Any) -> list[Any]:
    if isinstance(notebook, dict):
        sheets = [notebook] if "cells" in notebook else notebook.get("worksheets")  # of format 3
        if isinstance(sheets, list) and sheets:
            lists: list[Any] = [_mapping(sheet).get("cells") for sheet in sheets]
            if all(isinstance(cells, list) for cells in lists):
                return [cell for cells in lists for cell in cells]
    raise NotANotebook("is not a notebook of format 3 or 4")


def _cell(cell: Any) -> FileCell:
    if not isinstance(cell, dict):
        raise NotANotebook("is not a notebook: a cell is not an object")
    source = cell.get("source", cell.get("input", ""))  # format 3 calls code an input
    if isinstance(source, list) and all(isinstance(line, str) for line in source):
        source = "".join(source)
    if not isinstance(source, str):
        raise NotANotebook("is not a notebook: the source of a cell is not text")
    return FileCell(
        kind=cell["cell_type"] if cell.get("cell_type") in ("code", "markdown") else "raw",
        source=source.replace("\r\n", "\n").replace("\r", "\n"),
        metadata=_mapping(cell.get("metadata")),
        id=cell["id"] if isinstance(cell.get("id"), str) else "",
    )


def _mapping(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}
