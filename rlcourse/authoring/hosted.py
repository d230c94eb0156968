"""What a notebook needs in other places than JupyterLab: its first cell, and links to open it.

The set-up cell does nothing where the course is installed, and installs it where it is not: on
Colab, on Kaggle, in an environment of VS Code's. It is the builder's, so that no lesson has to
type it, and grading passes over it.
"""

from nbformat import NotebookNode
from nbformat.v4 import new_code_cell

from rlcourse import published

TAG = "setup"
SETUP = """\
# @title Set up: nothing to do where the course is installed {{display-mode: "form"}}
import importlib.util

if not importlib.util.find_spec("rlcourse"):
    COURSE = "{course}"  # {comment}
    assert COURSE, "name the course between the quotes above, then run this cell again"
    %pip install --quiet "{{COURSE}}"
"""
FOLDED = {  # each front end's way to fold a cell's text away
    "cellView": "form",  # Colab
    "_kg_hide-input": True,  # Kaggle
    "jupyter": {"source_hidden": True},  # JupyterLab, and the browser's Jupyter
}


def setup_cell() -> NotebookNode:
    """The cell that installs the course where it is missing; a torch that is there is kept."""
    course = published.requirement()
    comment = "where pip finds it" if course else "its wheel's file, or git+https://…"
    return new_code_cell(
        SETUP.format(course=course, comment=comment).rstrip(),
        metadata={**FOLDED, "tags": [TAG, "skip-execution"]},
        id="set-up",
    )


def is_setup(cell: NotebookNode) -> bool:
    """Whether it is that cell."""
    return cell.get("id") == "set-up" and TAG in cell.metadata.get("tags", [])


def with_links(title: str, lesson: str) -> str:
    """A lesson's opening text with links below its title, where the course is published."""
    links = published.launch_links(lesson)
    if not links:
        return title
    heading, rest = title.split("\n", 1) if "\n" in title else (title, "")
    opened = " · ".join(f"[{name}]({address})" for name, address in links.items())
    return f"{heading}\n\nOpen in {opened}\n{rest}"
