"""What cells showed when the course ran them: ``recorded.json`` in a lesson's folder.

A reader whose functions are not written yet sees it in place of the cell's own output. The builder
writes the file (``rlcourse.authoring.recording``); it belongs to the lesson, so that it is there
wherever the lesson is. Nothing here imports torch.
"""

import hashlib
import json
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from rlcourse.courses.course import LessonFolder

FILE = "recorded.json"


@dataclass(frozen=True)
class Outputs:
    """HTML by the keys of cells, and the lesson's opening picture."""

    cells: dict[str, str] = field(default_factory=dict)
    opening: dict[str, str] = field(default_factory=dict)  # png, alt, and of: what it was made of

    @property
    def text(self) -> str:
        content: dict[str, Any] = {"cells": self.cells, "opening": self.opening}
        return json.dumps(content, indent=1, ensure_ascii=False, sort_keys=True) + "\n"


def key(source: str) -> str:
    """What a cell is found by: its text, whatever surrounds it."""
    return hashlib.sha256(source.strip().encode()).hexdigest()[:12]


def read(lesson: LessonFolder) -> Outputs:
    """What is recorded of a lesson; nothing where there is no file, or it cannot be read."""
    try:
        return Outputs(**json.loads((lesson.directory / FILE).read_text("utf-8")))
    except (OSError, ValueError, TypeError):
        return Outputs()


def shown_by(source: str, lessons: Iterable[LessonFolder]) -> str:
    """HTML that the cell with this text showed, in the first of `lessons` that has it; or ""."""
    wanted = key(source)
    return next((html for lesson in lessons if (html := read(lesson).cells.get(wanted))), "")
