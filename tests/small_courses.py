"""Courses for tests: a few lessons, taken from the course or with a text and its exercises."""

import re
import shutil
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from rlcourse.courses import shipped
from rlcourse.courses.course import EXERCISE_CELL

REPOSITORY = Path(__file__).parents[1]
BESIDE = re.compile(r'beside\(__file__, "([^"]+)"\)')


def write_course(directory: Path, lessons: dict[str, str | None]) -> Path:
    """Write ``course.toml`` and nbgrader's settings into `directory`, and return it.

    `lessons` maps names to texts; None takes the course's own lesson. The exercises of a text are
    the course's, their files copied.
    """
    entries = [name if text else f"rlcourse:{name}" for name, text in lessons.items()]
    directory.mkdir(parents=True, exist_ok=True)
    listed = "".join(f'    "{entry}",\n' for entry in entries)
    (directory / "course.toml").write_text(
        f'notebooks = "../notebooks"\nsolutions = "../solutions"\nlessons = [\n{listed}]\n'
    )
    shutil.copy(REPOSITORY / "course" / "nbgrader_config.py", directory)
    for name, text in lessons.items():
        if text:
            write_lesson(directory / "lessons" / name, text)
    return directory


@contextmanager
def forgotten_afterwards(package: str) -> Iterator[None]:
    """Within it a course's package may be imported; the next test has another of its name."""
    before = list(sys.path)
    try:
        yield
    finally:
        sys.path[:] = before
        for name in [name for name in sys.modules if name.partition(".")[0] == package]:
            del sys.modules[name]


def write_lesson(folder: Path, text: str) -> None:
    """A lesson's text, and the files of those of its exercises that the course has."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "lesson.md").write_text(text)
    for exercise in EXERCISE_CELL.findall(text):
        if home := shipped().exercises.get(exercise):
            shutil.copy(home.directory / f"{exercise}.md", folder)
            _copy_module(home.directory / f"{exercise}.py", folder / f"{exercise}.py")


def _copy_module(source: Path, target: Path) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    shutil.copy(source, target)
    for path in BESIDE.findall(source.read_text("utf-8")):
        _copy_module(source.parent / path, target.parent / path)
