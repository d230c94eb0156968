"""From an executed solution, what its cells showed, for readers who cannot run them yet.

A cell that waits for a student's function begins with ``if ready(...)``. Until the function is
written, ``ready`` shows what is recorded here. And the picture of the cell that is tagged
``opening`` stands where the lesson's text says ``<!-- opening -->``.
"""

import base64
import hashlib
import html
import io
import re

from nbformat import NotebookNode
from PIL import Image

from rlcourse.authoring.cells import cell_id
from rlcourse.courses.outputs import Outputs, key

TAG, MARK, NAME = "opening", "<!-- opening -->", "opening.png"
WAITS = re.compile(r"^if ready\(", re.MULTILINE)
PICTURE = re.compile(
    r'<img class="rlcourse-picture" alt="([^"]*)" width="(\d+)"[^>]*base64,([^"]+)"'
)
GAP = 4  # pixels between two panels
SHADES = 64


def recording(notebook: NotebookNode, before: Outputs) -> Outputs:
    """What the cells of a solution showed that wait for a function; its opening picture.

    The picture is drawn again only if its cell shows something else than `before`, so that the
    same solution gives the same file on every machine.
    """
    waiting = [c for c in notebook.cells if c.cell_type == "code" and WAITS.search(c.source)]
    cells = {key(cell.source): "".join(map(_html, cell.outputs)) for cell in waiting}
    shown = {name: output for name, output in cells.items() if output}
    return Outputs(shown, _opening(notebook, before))


def _html(output: NotebookNode) -> str:
    """An output as HTML; "" where it has scripts, which need the whole page to themselves."""
    if output.output_type == "stream":
        return _as_it_stands(output.text) if output.name == "stdout" else ""
    data = output.get("data", {})
    if "text/html" in data:
        return "" if "<script" in data["text/html"] else data["text/html"]
    return _as_it_stands(data.get("text/plain", ""))


def _as_it_stands(text: str) -> str:
    text = html.escape(text.strip("\n")).replace("$", "<span>$</span>")  # no formula in between
    return f'<pre style="background: none">{text}</pre>' if text else ""


def _opening(notebook: NotebookNode, before: Outputs) -> dict[str, str]:
    """The panels that the tagged cell drew, as one picture; {} where no cell is tagged."""
    tagged = [cell for cell in notebook.cells if TAG in cell.metadata.get("tags", [])]
    drawn = "".join(_html(output) for cell in tagged for output in cell.outputs)
    panels = PICTURE.findall(drawn)
    if not panels:
        return {}
    made_of = hashlib.sha256("".join(png for *_, png in panels).encode()).hexdigest()[:16]
    if before.opening.get("of") == made_of:
        return before.opening
    alt = " ".join(html.unescape(alt) for alt, *_ in panels)
    return {"of": made_of, "alt": alt, "png": _side_by_side(panels)}


def _side_by_side(panels: list[tuple[str, str, str]]) -> str:
    """The panels at their size on the page, from left to right, in base64."""
    images = []
    for _, width, png in panels:
        image = Image.open(io.BytesIO(base64.b64decode(png))).convert("RGB")
        size = int(width), round(image.height * int(width) / image.width)
        images.append(image.resize(size, Image.Resampling.LANCZOS))
    total = sum(image.width for image in images) + GAP * (len(images) - 1)
    whole, left = Image.new("RGB", (total, max(i.height for i in images)), "white"), 0
    for image in images:
        whole.paste(image, (left, 0))
        left += image.width + GAP
    content = io.BytesIO()
    whole.quantize(SHADES).save(content, "PNG", optimize=True)
    return base64.b64encode(content.getvalue()).decode()


def verify_opening(lesson) -> None:
    """A lesson whose text has the mark tags one cell, and the other way around."""
    marks = [cell.line for cell in lesson.cells if MARK in cell.source]
    tags = [cell.line for cell in lesson.cells if TAG in cell.tags]
    if len(marks) != len(tags) or len(marks) > 1:
        raise lesson.error((marks or tags)[-1], f"{MARK} needs just one cell tagged {TAG}.")


def with_opening(notebook: NotebookNode, recorded: Outputs) -> NotebookNode:
    """Put the opening picture where the text marks its place, or take the mark out."""
    for cell in notebook.cells:
        if cell.cell_type != "markdown" or MARK not in cell.source:
            continue
        picture = ""
        if recorded.opening:
            alt = re.sub(r"[\[\]\\*_`$]", " ", recorded.opening["alt"])
            picture = f"![{alt}](attachment:{NAME})"
            cell["attachments"] = {NAME: {"image/png": recorded.opening["png"]}}
        cell.source = cell.source.replace(MARK, picture)
        cell["id"] = cell_id(cell.cell_type, cell.source)  # a cell is known by its text
    return notebook
