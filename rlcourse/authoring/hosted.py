"""What a notebook needs in other places than JupyterLab: its first cell, and links to open it.

The set-up cell does nothing where the course is installed, and installs it where it is not: on
Colab, on Kaggle, in an environment of VS Code's. Where it cannot, one sentence says what to do, and
the cells below do not run. It is the builder's, so that no lesson has to type it, and grading
skips it. Its text is folded away; its output is not, and does not ask the reader to unfold it.
"""

from nbformat import NotebookNode
from nbformat.v4 import new_code_cell

import rlcourse
from rlcourse import published

TAG = "setup"
SETUP = """\
# @title Set up: nothing to do where the course is installed
def set_up(course, version):
    import importlib.util, subprocess, sys

    class Stop(Exception):
        def _render_traceback_(self):
            return [str(self)]

    if not importlib.util.find_spec("rlcourse"):
        if not course:
            raise Stop({nowhere!r})
        print("installing", course)
        pip = [sys.executable, "-m", "pip", "install", "--quiet", course]
        done = subprocess.run(pip, capture_output=True, text=True)
        if done.returncode:
            reason = (done.stderr.strip().splitlines() or ["pip gave no reason"])[-1]
            raise Stop({failed!r}.format(course, reason))
        importlib.invalidate_caches()
    import rlcourse
    from packaging.version import Version

    if Version(rlcourse.__version__) < Version(version):
        print({older!r}.format(rlcourse.__version__, version))

set_up("{course}", "{version}")
"""
NOWHERE = (
    "rlcourse is not installed here, and this notebook does not know where to get it: add a cell "
    "above with %pip install and the course's wheel, or git+ and its repository's address, "
    "then run all cells again."
)
FAILED = (
    "rlcourse could not be installed from {}: check that this machine has a network (on Kaggle: "
    "Settings, Internet), then run this cell again. pip said: {}"
)
OLDER = (
    "rlcourse {} is installed here, and this notebook is from {}: update the course, then restart "
    "the kernel."
)
FOLDED = {  # each front end's way to fold a cell's text away
    "cellView": "form",  # Colab
    "_kg_hide-input": True,  # Kaggle
    "jupyter": {"source_hidden": True},  # JupyterLab, and the browser's Jupyter
}


def setup_cell(ours: bool = True) -> NotebookNode:
    """The cell that installs the course where it is missing; a torch that is there is kept.

    For a course that is not `ours`, the person who runs the cell says where to install it from.
    """
    text = SETUP.format(
        course=published.requirement() if ours else "",
        version=rlcourse.__version__,
        nowhere=NOWHERE,
        failed=FAILED,
        older=OLDER,
    )
    metadata = {**FOLDED, "tags": [TAG, "skip-execution"]}
    return new_code_cell(text.rstrip(), metadata=metadata, id="set-up")


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
