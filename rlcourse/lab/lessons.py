"""The student's copy of the lessons: filled from the course's, and never written over.

A small file in the copy, ``MANIFEST``, holds checksums of what was copied out. A lesson whose cells
still have theirs is unchanged, and is renewed when the course's changes; any other is the
student's.
"""

import contextlib
import hashlib
import itertools
import json
import os
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import rlcourse
from rlcourse.errors import UserError
from rlcourse.files import TEMPORARY
from rlcourse.lab.answers import answered_cells

MANIFEST = ".rlcourse-lessons.json"
IN_A_CLONE, ELSEWHERE = "my-lessons", "rlcourse-lessons"


@dataclass(frozen=True)
class Copied:
    """What ``copy_lessons`` did in `directory`, by names of lessons or of files."""

    directory: Path
    new: tuple[str, ...] = ()
    renewed: tuple[str, ...] = ()
    beside: tuple[str, ...] = ()
    outdated: tuple[str, ...] = ()

    def __str__(self) -> str:
        """One line for each kind of thing that was done; where nothing was, that it is so."""
        lines = []
        if self.new:
            lines.append(f"{_count(self.new)} copied to {self.directory}")
        if self.renewed:
            lines.append(f"{_listing(self.renewed)}: renewed, as you had not changed it")
        if self.beside:
            lines.append(f"{_listing(self.beside)}: the course's newer version, beside yours")
        if self.outdated:
            lines.append(
                f"{_listing(self.outdated)}: yours was left as it is, but the course has a newer "
                f'version; `rlcourse lessons "{self.directory}" --newer` puts it beside yours'
            )
        return "\n".join(lines) or f"the lessons in {self.directory} are up to date"


def _count(names: tuple[str, ...]) -> str:
    return f"{len(names)} lesson" + ("" if len(names) == 1 else "s")


def _listing(names: tuple[str, ...]) -> str:
    return ", ".join(names)


def clone_root() -> Path | None:
    """The clone of the course that this package runs from; None where it is installed."""
    root = Path(rlcourse.__file__).resolve().parents[1]
    return root if (root / "course" / "lessons").is_dir() else None


def course_directory() -> Path:
    """Where the course's own notebooks lie: in the clone, or in the installed package."""
    root = clone_root()
    return root / "notebooks" if root else Path(rlcourse.__file__).resolve().parent / "notebooks"


def course_lessons() -> dict[str, Path]:
    """The course's notebooks by name, ``02_policy_gradient`` and so on, in order."""
    found = sorted(course_directory().glob("[0-9][0-9]_*/*.ipynb"))
    if not found:
        raise UserError(
            f"there are no lessons in {course_directory()}: install the course again, or run "
            "`rlcourse build` in a clone of it"
        )
    return {path.stem: path for path in found}


def chosen_lesson(wanted: str) -> str:
    """The lesson of that number, topic or name; of the first letters of a name, the first."""
    names = list(course_lessons())
    for name in names:
        if name.startswith(wanted) or wanted == name.partition("_")[2]:
            return name
    raise UserError(f"there is no lesson {wanted!r}; the lessons are {', '.join(names)}")


def default_directory() -> Path:
    """The folder of lessons one stands in; else ``my-lessons`` of the clone, or one made here."""
    here = Path.cwd()
    if (here / MANIFEST).is_file():
        return here
    root = clone_root()
    return root / IN_A_CLONE if root else here / ELSEWHERE


def place(directory: Path, name: str) -> Path:
    """Where a lesson lies in a copy."""
    return directory / name / f"{name}.ipynb"


def copy_lessons(directory: Path, newer: bool = False) -> Copied:
    """Fill `directory` with the course's lessons: missing ones copied, unchanged ones renewed.

    A lesson that the student changed stays as it is. Where the course has a newer version of it,
    `newer` puts that beside it, under a name that is free; without `newer` it is only reported.
    """
    directory = directory.resolve()
    _refuse_course_directories(directory)
    manifest = _read_manifest(directory)
    done: dict[str, list[str]] = {"new": [], "renewed": [], "beside": [], "outdated": []}
    for name, source in course_lessons().items():
        content, path = source.read_bytes(), place(directory, name)
        course = Checksums.of(content)
        state = _state(path, manifest.get(_key(path, directory)), course)
        if state in ("missing", "unchanged"):
            _write(path, content)
            done["new" if state == "missing" else "renewed"].append(name)
        elif state == "outdated" and newer:
            beside = _free_name(path, manifest, directory)
            _write(beside, content)
            manifest[_key(beside, directory)] = course
            done["beside"].append(_key(beside, directory))
        elif state == "outdated":
            done["outdated"].append(name)
            continue
        manifest[_key(path, directory)] = course
    _write(directory / MANIFEST, (json.dumps(manifest, indent=2) + "\n").encode())
    return Copied(directory, **{kind: tuple(names) for kind, names in done.items()})


class Checksums(NamedTuple):
    """Of a notebook's bytes, which tell the course's versions apart, and of its cells' texts and
    outputs: JupyterLab saves a notebook that was only looked at with other metadata."""

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
            return None  # a directory, a broken link: the student's, whatever it is


def _parts(cell: dict) -> tuple:
    return cell["source"], cell.get("outputs") or [], cell.get("attachments") or {}


def _text(value) -> str:
    """A source, which a notebook may hold as one text or as lines, as one text."""
    lines = isinstance(value, list) and all(isinstance(line, str) for line in value)
    return "".join(value) if lines else value if isinstance(value, str) else json.dumps(value)


def _state(path: Path, copied_out: Checksums | None, course: Checksums) -> str:
    """ "missing"; "current", also where the student changed it since; "unchanged" since an earlier
    version was copied out; or "outdated", the student's and of an earlier version."""
    if not os.path.lexists(path):
        return "missing"
    if copied_out and copied_out.version == course.version:
        return "current"
    found = Checksums.of_file(path)
    if found and copied_out is None and found.cells == course.cells:
        return "current"
    unchanged = found and copied_out and found.cells == copied_out.cells
    # In a clone somebody's answers may have stood in the course's own notebook when it was copied.
    return "unchanged" if unchanged and not answered_cells(path) else "outdated"


def _refuse_course_directories(directory: Path) -> None:
    root = clone_root()
    own = [root / name for name in ("notebooks", "course", "solutions", "rlcourse")] if root else []
    own.append(course_directory())
    if any(directory == folder or folder in directory.parents for folder in own):
        raise UserError(
            f"{directory} belongs to the course itself: choose another folder to work in"
        )


def _free_name(path: Path, manifest: dict[str, Checksums], directory: Path) -> Path:
    """NAME.new.ipynb, or NAME.new-2.ipynb, …: the first that is missing or unchanged."""
    for number in itertools.count(1):
        suffix = ".new" if number == 1 else f".new-{number}"
        beside = path.with_name(f"{path.stem}{suffix}.ipynb")
        if not os.path.lexists(beside):
            return beside
        found, copied_out = Checksums.of_file(beside), manifest.get(_key(beside, directory))
        if found and copied_out and found.cells == copied_out.cells:
            return beside
    raise AssertionError("numbers do not end")


def _key(path: Path, directory: Path) -> str:
    return path.relative_to(directory).as_posix()


def _read_manifest(directory: Path) -> dict[str, Checksums]:
    """What was copied out; an unreadable one counts as empty, and every lesson as changed."""
    try:
        found = json.loads((directory / MANIFEST).read_text("utf-8"))
        return {str(key): Checksums(*map(str, values)) for key, values in found.items()}
    except (OSError, ValueError, TypeError, AttributeError):
        return {}


def _write(path: Path, content: bytes) -> None:
    """All or nothing, and byte for byte: line ends must not change what the checksum is of."""
    temporary = path.with_name(TEMPORARY + path.name)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        temporary.write_bytes(content)
        os.replace(temporary, path)
    except OSError as error:
        with contextlib.suppress(OSError):
            temporary.unlink()
        reason = error.strerror or error
        raise UserError(f"{path} could not be written ({reason}): choose another folder") from error
