"""Interactive figures in lessons: where a lesson asks for one, and the files that draw them.

A lesson names a figure above the cell that draws it, in a line of its own:

    *On the course's website, this picture has sliders.* <!-- figure: bandit -->

A notebook shows the sentence, and the cell its static picture. A page of the site leaves the
line out and puts `bandit.js` above that picture, which is then folded; without JavaScript the
picture stays as it is.
"""

import re
import shutil
from pathlib import Path

from rlcourse.errors import UserError

HERE = Path(__file__).parent
MARK = re.compile(r"\n*^.*<!-- figure: (?P<name>\w+) -->$", re.MULTILINE)
FOLDED = "The picture that the cell draws, and that the text below describes"


def taken_out(text: str) -> tuple[str, str | None]:
    """A text without its mark's line, and the name of the figure that it asks for.

    Raises:
        UserError: there is no such figure.
    """
    mark = MARK.search(text)
    if mark is None:
        return text, None
    if not (HERE / f"{mark['name']}.js").is_file():
        own = {"chart", "figure", "figures"}
        names = ", ".join(sorted({path.stem for path in HERE.glob("*.js")} - own))
        raise UserError(f"there is no figure {mark['name']!r}: choose one of {names}")
    return text[: mark.start()] + text[mark.end() :], mark["name"]


def around(name: str, outputs: list[str]) -> list[str]:
    """Outputs of a cell, as Markdown, with the figure above them."""
    return [
        f'<div data-figure="{name}">\n<details open><summary>{FOLDED}</summary>',
        *outputs,
        "</details>\n</div>",
    ]


def loaded() -> str:
    """The end of a page with figures."""
    html = '<link rel="stylesheet" href="../figures/figures.css">\n'
    html += '<script type="module" src="../figures/figures.js"></script>'
    return f"```{{raw}} html\n{html}\n```"


def write_files(target: Path) -> None:
    """Write everything that such a page loads to `target`."""
    target.mkdir(parents=True, exist_ok=True)
    for pattern in ("*.js", "*.css"):
        for path in HERE.glob(pattern):
            shutil.copyfile(path, target / path.name)
