"""Pictures that are attached to a notebook's Markdown cells, on a page that is no notebook."""

import base64
import html
import re
import struct
from collections.abc import Callable

from nbformat import NotebookNode

ATTACHED = re.compile(r"!\[([^\]]*)\]\(attachment:([^)]+)\)")


def size(png: bytes) -> tuple[int, int]:
    """Width and height, so that a page can keep the place free before it loads the picture."""
    return struct.unpack(">II", png[16:24])


def with_files(cell: NotebookNode, keep: Callable[[bytes], str]) -> str:
    """The cell's text, with a tag for each picture; `keep` gives the address of its file."""

    def file_of(match: re.Match) -> str:
        png = base64.b64decode(cell.attachments[match[2]]["image/png"])
        width, height = size(png)
        tag = f'<img class="rlcourse-picture" alt="{html.escape(match[1])}" src="{keep(png)}"'
        tag += f' width="{width}" height="{height}">'
        return f'```{{raw}} html\n<div class="shown">{tag}</div>\n```'

    return ATTACHED.sub(file_of, cell.source)
