"""The student's copy of the lessons: filled from the course's, and never overwritten.

A small file in the copy, ``MANIFEST``, holds checksums of what was copied out. A lesson whose cells
still match is unchanged, and is updated when the course's version changes; any other belongs to the
student.
"""

import hashlib
import json
import os
from dataclasses import dataclass
from pathlib import Path

from rlcourse.courses import current
from rlcourse.courses.finding import clone_root, shipped_directory
from rlcourse.errors import UserError
from rlcourse.files import replace_bytes
from rlcourse.lab.answered import answered_cells
from rlcourse.words import counted

MANIFEST = ".rlcourse-lessons.json"
IN_A_CLONE = "my-lessons"


@dataclass(frozen=True)
class Copied:
    """What ``copy_lessons`` did in `directory`, as names of lessons."""

    directory: Path
    new: tuple[str, ...] = ()
    renewed: tuple[str, ...] = ()
    outdated: tuple[str, ...] = ()

    def __str__(self) -> str:
        """One line for each kind of action; if there was none, a line that says so."""
        lines = []
        if self.new:
            lines.append(f"{counted(len(self.new), 'lesson')} copied to {self.directory}")
        if self.renewed:
            lines.append(f"{', '.join(self.renewed)}: updated, as you had not changed it")
        if self.outdated:
            lines.append(
                f"{', '.join(self.outdated)}: yours was left as it is, and the course has another "
                "version; to get that, rename your notebook and run this command again"
            )
        return "\n".join(lines) or f"the lessons in {self.directory} are up to date"


def course_lessons() -> dict[str, Path]:
    """The course's notebooks by name, ``02_policy_gradient`` and so on, in order."""
    course = current()
    found = {lesson.name: course.notebook(lesson.name) for lesson in course.lessons}
    found = {name: path for name, path in found.items() if path.is_file()}
    if not found:
        raise UserError(
            f"there are no lessons in {course.notebooks}: install the course again, or run "
            "`rlcourse build` in its source directory"
        )
    return found


def default_directory() -> Path:
    """The folder of lessons that you are in; else ``my-lessons`` of your own clone; else the one in
    your home, if there is one or if you cannot write to the clone, as on a shared machine; else one
    made here."""
    here, course = Path.cwd(), current()
    root, name = clone_root(), f"{course.name}-lessons"
    if os.path.isfile(here / MANIFEST) or here.name == name:
        return here
    if course.directory != shipped_directory():
        return here / name
    if root and os.access(root, os.W_OK):
        return root / IN_A_CLONE
    at_home = Path.home() / name
    return at_home if root or (at_home / MANIFEST).is_file() else here / name


def place(directory: Path, name: str) -> Path:
    """Where a lesson is in a copy."""
    return directory / name / f"{name}.ipynb"


def copy_lessons(directory: Path) -> Copied:
    """Fill `directory` with the course's lessons: missing ones copied, unchanged ones renewed.

    A lesson that the student changed stays as it is. Where the course has another version of it
    than the one it began as, that is reported.
    """
    directory = directory.resolve()
    _refuse_course_directories(directory)
    manifest = _read_manifest(directory)
    done: dict[str, list[str]] = {"new": [], "renewed": [], "outdated": []}
    for name, source in course_lessons().items():
        content, path = source.read_bytes(), place(directory, name)
        course, given = checksum(content), manifest.get(name)
        if not os.path.lexists(path):
            _write(path, content)
            done["new"].append(name)
        elif (mine := _checksum_of_file(path)) != course and given != course:
            # In a clone, the course's own notebook may have held somebody's answers when copied.
            if mine is None or mine != given or answered_cells(path):
                done["outdated"].append(name)
                continue
            _write(path, content)
            done["renewed"].append(name)
        manifest[name] = course
    _write(directory / MANIFEST, (json.dumps(manifest, indent=2) + "\n").encode())
    return Copied(directory, **{kind: tuple(names) for kind, names in done.items()})


def checksum(content: bytes) -> str:
    """Of what its cells hold, because JupyterLab saves other metadata in a notebook that was only
    looked at; of all its bytes where it has no cells."""
    try:
        parts = [
            [cell["cell_type"], _text(cell["source"]), cell.get("outputs"), cell.get("attachments")]
            for cell in json.loads(content)["cells"]
        ]
        content = json.dumps(parts).encode()
    except (ValueError, TypeError, KeyError, AttributeError):
        pass
    return hashlib.sha256(content).hexdigest()


def _checksum_of_file(path: Path) -> str | None:
    try:
        return checksum(path.read_bytes())
    except OSError:
        return None  # a directory or a broken link: it belongs to the student


def _text(source: str | list[str]) -> str:
    """A source as one text; a notebook may hold it as one text or as lines."""
    return source if isinstance(source, str) else "".join(source)


def _refuse_course_directories(directory: Path) -> None:
    course, root = current(), clone_root()
    own = [course.directory, course.notebooks, course.solutions]
    own += [root / name for name in ("notebooks", "course", "solutions", "rlcourse") if root]
    if any(directory == folder or folder in directory.parents for folder in own):
        raise UserError(
            f"{directory} belongs to the course itself: choose another folder to work in"
        )


def _read_manifest(directory: Path) -> dict[str, str]:
    """What was copied out; an unreadable file counts as empty, and every lesson as changed."""
    try:
        found = json.loads((directory / MANIFEST).read_text("utf-8"))
        return {str(name): str(checksum) for name, checksum in found.items()}
    except (OSError, ValueError, AttributeError):
        return {}


def _write(path: Path, content: bytes) -> None:
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        replace_bytes(path, content)
    except OSError as error:
        reason = error.strerror or error
        raise UserError(f"{path} could not be written ({reason}): choose another folder") from error
