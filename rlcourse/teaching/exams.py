"""Exam sheets to print: ``teaching/exams/NAME.md``, a heading for each question with its points and
``### Solution`` below it."""

import re
from pathlib import Path

from rlcourse.errors import UserError

POINTS = re.compile(r"^## .*\((\d+) points\)$", re.MULTILINE)
TOTAL = re.compile(r"^# .*?(\d+) points\)$", re.MULTILINE)
SOLUTION = re.compile(r"^### Solution\n.*?(?=^## |\Z)", re.MULTILINE | re.DOTALL)


def sheets(directory: Path) -> list[tuple[str, str, str]]:
    """(file, title, Markdown) of each sheet, without solutions and with them.

    Raises:
        UserError: the points of a sheet do not sum to what its title says, or a solution lacks.
    """
    found = []
    for path in sorted(directory.glob("*.md")):
        text = path.read_text("utf-8")
        said, points = TOTAL.search(text), [int(p) for p in POINTS.findall(text)]
        if not said or sum(points) != int(said[1]):
            raise UserError(f"{path}: the questions have {sum(points)} points, not what it says")
        if len(SOLUTION.findall(text)) != len(points):
            raise UserError(f"{path}: each question needs one '### Solution'")
        asked = SOLUTION.sub("", text)
        found.append((f"exam-{path.stem}", f"Exam: {path.stem}", asked))
        found.append((f"exam-{path.stem}-solutions", f"Exam: {path.stem}, with solutions", text))
    return found
