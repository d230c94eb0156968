"""The student's copy of the lessons: filled from the course's, and never overwritten.

A small file in the copy, ``MANIFEST``, holds checksums of what was copied out. A lesson whose cells
still match is unchanged, and is updated when the course's version changes; any other belongs to the
student. Newer versions of those go into a folder of their own, since nbgrader hands in all that is
in a lesson's folder.
"""

import hashlib
import json
import os
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from rlcourse.courses import current
from rlcourse.courses.finding import clone_root, shipped_directory
from rlcourse.errors import UserError
from rlcourse.files import replace_bytes
from rlcourse.lab.answered import answered_cells
from rlcourse.words import counted

MANIFEST = ".rlcourse-lessons.json"
IN_A_CLONE = "my-lessons"
# The folder in a copy for the course's versions of lessons that the student has changed
NEWER = "newer"


@dataclass(frozen=True)
class Copied:
    """What ``copy_lessons`` did in `directory`, as names of lessons or of files."""

    directory: Path
    new: tuple[str, ...] = ()
    renewed: tuple[str, ...] = ()
    beside: tuple[str, ...] = ()
    outdated: tuple[str, ...] = ()

    def __str__(self) -> str:
        """One line for each kind of action; if there was none, a line that says so."""
        lines = []
        if self.new:
            lines.append(f"{_count(self.new)} copied to {self.directory}")
        if self.renewed:
            lines.append(f"{_listing(self.renewed)}: updated, as you had not changed it")
        if self.beside:
            lines.append(f"{_listing(self.beside)}: the course's newer version; yours is as it was")
        if self.outdated:
            lines.append(
                f"{_listing(self.outdated)}: yours was left as it is, but the course has a newer "
                f'version; `rlcourse lab --newer --dir "{self.directory}"` saves it in the '
                f"folder `{NEWER}` there"
            )
        return "\n".join(lines) or f"the lessons in {self.directory} are up to date"


def _count(names: tuple[str, ...]) -> str:
    return counted(len(names), "lesson")


def _listing(names: tuple[str, ...]) -> str:
    return ", ".join(names)


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
    your home, if there is one or if the clone is somebody else's, as on a shared machine; else one
    made here."""
    here, course = Path.cwd(), current()
    root, name = clone_root(), f"{course.name}-lessons"
    if os.path.isfile(here / MANIFEST) or here.name == name:
        return here
    if course.directory != shipped_directory():
        return here / name
    if root and _is_mine(root):
        return root / IN_A_CLONE
    at_home = Path.home() / name
    return at_home if root or (at_home / MANIFEST).is_file() else here / name


def _is_mine(folder: Path) -> bool:
    """Whether it belongs to this user, who can write to it. Windows has no numbers of users, and
    only the second counts."""
    owned = not hasattr(os, "geteuid") or folder.stat().st_uid == os.geteuid()
    return owned and os.access(folder, os.W_OK)


def place(directory: Path, name: str) -> Path:
    """Where a lesson is in a copy."""
    return directory / name / f"{name}.ipynb"


def copy_lessons(directory: Path, newer: bool = False) -> Copied:
    """Fill `directory` with the course's lessons: missing ones copied, unchanged ones renewed.

    A lesson that the student changed stays as it is. Where the course has a newer version of it,
    `newer` puts that into the folder NEWER; otherwise it is only reported.
    """
    directory = directory.resolve()
    _refuse_course_directories(directory)
    manifest = _read_manifest(directory)
    done: dict[str, list[str]] = {"new": [], "renewed": [], "beside": [], "outdated": []}
    for name, source in course_lessons().items():
        content, path = source.read_bytes(), place(directory, name)
        course = Checksums.of(content)
        given = manifest.get(_key(path, directory))
        state = _state(path, given, course, content)
        if state in ("missing", "unchanged"):
            _write(path, content)
            done["new" if state == "missing" else "renewed"].append(name)
        elif state == "outdated" and newer:
            beside = directory / NEWER / f"{name}.ipynb"
            if answered_cells(beside):
                raise UserError(f"{beside} holds answers of yours: move it to another folder first")
            _write(beside, content)
            done["beside"].append(_key(beside, directory))
        elif state == "outdated":
            done["outdated"].append(name)
            continue
        manifest[_key(path, directory)] = course
    _write(directory / MANIFEST, (json.dumps(manifest, indent=2) + "\n").encode())
    return Copied(directory, **{kind: tuple(names) for kind, names in done.items()})


class Checksums(NamedTuple):
    """Of a notebook's bytes, which tell the course's versions apart, and of its cells' texts and
    outputs, because JupyterLab saves other metadata in a notebook that was only looked at."""

    version: str
    cells: str

    @classmethod
    def of(cls, content: bytes) -> "Checksums":
        version = hashlib.sha256(content).hexdigest()
        try:
            notebook = json.loads(content)
            cells = [[cell["cell_type"], *map(_text, _parts(cell))] for cell in notebook["cells"]]
        except (ValueError, TypeError, KeyError, AttributeError):
            return cls(version, version)
        return cls(version, hashlib.sha256(json.dumps(cells).encode()).hexdigest())

    @classmethod
    def of_file(cls, path: Path) -> "Checksums | None":
        try:
            return cls.of(path.read_bytes())
        except OSError:
            return None  # a directory or a broken link: it belongs to the student


def _parts(cell: dict) -> tuple:
    return cell["source"], cell.get("outputs") or [], cell.get("attachments") or {}


def _text(value) -> str:
    """A source as one text; a notebook may hold it as one text or as lines."""
    lines = isinstance(value, list) and all(isinstance(line, str) for line in value)
    return "".join(value) if lines else value if isinstance(value, str) else json.dumps(value)


def _given(content: bytes) -> set[tuple[str, str]] | None:
    """What tells a lesson's versions apart even where a student has worked: the ids of its cells,
    which the build makes of their texts; the texts between exercises; and of an exercise, the
    checksum of what it was at first."""
    try:
        cells = json.loads(content)["cells"]
        return {(str(cell["id"]), _at_first(cell)) for cell in cells}
    except (ValueError, TypeError, KeyError, AttributeError):
        return None


def _at_first(cell: dict) -> str:
    if marks := cell["metadata"].get("nbgrader"):
        return str(marks["checksum"])
    return _text(cell["source"]) if cell["cell_type"] == "markdown" else ""


def _is_from(path: Path, content: bytes) -> bool:
    """Whether a student's notebook, fetched from nbgrader's exchange say, began as the course's."""
    try:
        theirs, course = _given(path.read_bytes()), _given(content)
    except OSError:
        return False
    return bool(course and theirs and course <= theirs)


def _state(path: Path, copied_out: Checksums | None, course: Checksums, content: bytes) -> str:
    """ "missing"; "current", also where the student changed it since; "unchanged" since an earlier
    version was copied out; or "outdated", the student's and of an earlier version."""
    if not os.path.lexists(path):
        return "missing"
    if copied_out and copied_out.version == course.version:
        return "current"
    found = Checksums.of_file(path)
    same_cells = found is not None and found.cells == course.cells
    if copied_out is None and (same_cells or _is_from(path, content)):
        return "current"
    unchanged = found and copied_out and found.cells == copied_out.cells
    # In a clone, the course's own notebook may have held somebody's answers when it was copied.
    if unchanged and not answered_cells(path):
        return "unchanged"
    same = copied_out is not None and copied_out.cells == course.cells
    return "current" if same else "outdated"


def _refuse_course_directories(directory: Path) -> None:
    course, root = current(), clone_root()
    own = [course.directory, course.notebooks, course.solutions]
    own += (
        [root / name for name in ("notebooks", "course", "solutions", "rlcourse")] if root else []
    )
    if any(directory == folder or folder in directory.parents for folder in own):
        raise UserError(
            f"{directory} belongs to the course itself: choose another folder to work in"
        )


def _key(path: Path, directory: Path) -> str:
    return path.relative_to(directory).as_posix()


def _read_manifest(directory: Path) -> dict[str, Checksums]:
    """What was copied out; an unreadable file counts as empty, and every lesson as changed."""
    try:
        found = json.loads((directory / MANIFEST).read_text("utf-8"))
        return {str(key): Checksums(*map(str, values)) for key, values in found.items()}
    except (OSError, ValueError, TypeError, AttributeError):
        return {}


def _write(path: Path, content: bytes) -> None:
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        replace_bytes(path, content)
    except OSError as error:
        reason = error.strerror or error
        raise UserError(f"{path} could not be written ({reason}): choose another folder") from error
