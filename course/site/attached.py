"""Pictures that are attached to a notebook's Markdown cells, on a page that is no notebook."""

import base64
import html
import re
from collections.abc import Callable

from nbformat import NotebookNode

ATTACHED = re.compile(r"!\[([^\]]*)\]\(attachment:([^)]+)\)")


def with_files(cell: NotebookNode, keep: Callable[[bytes], str]) -> str:
    """The cell's text, with a tag for each picture; `keep` gives the address of its file."""

    def file_of(match: re.Match) -> str:
        source = keep(base64.b64decode(cell.attachments[match[2]]["image/png"]))
        tag = f'<img class="rlcourse-picture" alt="{html.escape(match[1])}" src="{source}">'
        return f'```{{raw}} html\n<div class="shown">{tag}</div>\n```'

    return ATTACHED.sub(file_of, cell.source)
