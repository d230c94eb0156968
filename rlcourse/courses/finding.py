"""Which course is meant, and where it is.

The first of these decides: ``$RLCOURSE_COURSE``, the name of an installed course or a directory
with a ``course.toml``; the working directory or one above it, where a course or its repository is;
the one course that is installed next to rlcourse (an entry point of the group ``rlcourse.courses``,
which names its package); and the course that comes with rlcourse.
"""

import importlib
import importlib.util
import os
import sys
from functools import cache
from importlib import metadata
from pathlib import Path

import rlcourse
from rlcourse.courses.course import FILE, Course, read_course
from rlcourse.errors import UserError

GROUP = "rlcourse.courses"
VARIABLE = "RLCOURSE_COURSE"
PACKAGE = Path(rlcourse.__file__).resolve().parent


def current(start: Path | None = None) -> Course:
    """The course that is meant here; `start` replaces the working directory."""
    if chosen := os.environ.get(VARIABLE):
        try:
            return named(chosen)
        except UserError as error:
            raise UserError(f"{VARIABLE}={chosen}: {error}") from error
    if found := _around(Path(start or ".").resolve()):
        return _opened(found)
    installed = _installed()
    if len(installed) > 1:
        raise UserError(
            f"several courses are installed ({', '.join(sorted(installed))}): set {VARIABLE} to "
            "the one that you mean"
        )
    return _opened(next(iter(installed.values()), shipped_directory()))


def course_at(directory: Path) -> Course:
    """The course in `directory`, or in the repository that it is a part of, and no other.

    Raises:
        UserError: there is none.
    """
    found = _around(directory.resolve())
    if found is None:
        raise UserError(f"there is no course in {directory}: no folder there has a {FILE}")
    return _opened(found)


def shipped() -> Course:
    """The course that comes with rlcourse."""
    return read_course(shipped_directory(), named)


def named(name: str) -> Course:
    """The course of that name, shipped or installed, or in the directory of that name."""
    if name == "rlcourse":
        return shipped()
    installed = _installed()
    if name in installed:
        return _opened(installed[name])
    if os.path.isfile(Path(name) / FILE):
        return _opened(Path(name).resolve())
    known = ", ".join(sorted({"rlcourse", *installed}))
    raise UserError(f"there is no course {name!r}: it is one of {known}, or a folder with {FILE}")


def clone_root() -> Path | None:
    """The clone of rlcourse that this package runs from; None where it is installed."""
    root = PACKAGE.parent
    return root if (root / "course" / FILE).is_file() else None


def shipped_directory() -> Path:
    """Where rlcourse's own ``course.toml`` is: in the clone, or in the installed package."""
    return (clone_root() or PACKAGE) / "course"


def _around(start: Path) -> Path | None:
    """The nearest directory with a course, from `start` upward; a repository holds it in one of
    its folders. What this user may not look into holds none."""
    for directory in (start, *start.parents):
        for place in (directory, directory / "course"):
            if os.path.isfile(place / FILE):
                return place
        if os.path.isfile(directory / "pyproject.toml"):
            inside = [path.parent for path in directory.glob(f"*/{FILE}")]
            if len(inside) == 1:
                return inside[0]
    return None


@cache
def _installed() -> dict[str, Path]:
    """Directories of the courses that are installed next to rlcourse, by name."""
    points = metadata.entry_points(group=GROUP)
    return {point.name: place for point in points for place in _places(point.value)[:1]}


def _places(package: str) -> list[Path]:
    """Where an importable package is; nowhere if there is none of that name."""
    try:
        spec = importlib.util.find_spec(package)
    except (ImportError, ValueError):  # of what a dotted name begins with
        return []
    return [Path(place).resolve() for place in (spec and spec.submodule_search_locations) or []]


def _opened(directory: Path) -> Course:
    """The course in `directory`, whose package is what `import` finds from now on."""
    course = read_course(directory, named)
    if course.is_package and directory not in _places(directory.name):
        home = str(directory.parent)
        sys.path[:] = [home, *(place for place in sys.path if place != home)]
        importlib.invalidate_caches()
    return course
