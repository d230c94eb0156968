"""The students' copy of the library: what a submission may import while it is graded.

This lesson's functions, and those of the lessons after it, stand in it as the stubs that students
are given; exercises, references, the builder and the grader do not stand in it at all.
"""

import json
import os
import shutil
from collections import defaultdict
from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path

import rlcourse
from rlcourse.authoring.stubs import blank_functions
from rlcourse.checks.exercise import Exercise
from rlcourse.grading import visible

PACKAGE = Path(rlcourse.__file__).parent
COPIED = (
    *("__init__.py", "errors.py", "hub.py", "pictures.py", "plots.py"),
    *("algorithms", "tasks", "policy"),
)
STUDENTS_SIDE = tuple(f"checks/{name}.py" for name in ("calling", "episodes", "specs", "stand_in"))
RUNTIME = tuple(
    f"{name}.py"
    for name in ("__init__", "isolation", "limits", "protocol", "server", "syscalls", "worker")
)


def write_library(directory: Path, absent: Iterable[Exercise]) -> None:
    """Write the package without the functions of `absent` into `directory`, for a server's path."""
    package = directory / "rlcourse"
    package.mkdir(parents=True)
    skip = shutil.ignore_patterns("__pycache__", "build_*", "*.md")
    for name in COPIED:
        source = PACKAGE / name
        if source.is_dir():
            shutil.copytree(source, package / name, ignore=skip)
        else:
            shutil.copy(source, package / name)
    for name in STUDENTS_SIDE + tuple(f"grading/{file}" for file in RUNTIME):
        (package / name).parent.mkdir(exist_ok=True)
        shutil.copy(PACKAGE / name, package / name)
    for name in ("checks", "grading"):
        (package / name / "__init__.py").write_text('"""The untrusted side of grading."""\n')
    for name in ("exercises", "student", "training"):
        (package / name).mkdir(exist_ok=True)
        shutil.copy(PACKAGE / "grading" / f"noop_{name}.py", package / name / "__init__.py")
    for module, names in _by_module(absent).items():
        path = package.joinpath(*module.split(".")[1:]).with_suffix(".py")
        if not path.exists():  # tests that students write: their answers stand with the exercises
            continue
        path.write_text(blank_functions(path.read_text("utf-8"), names), "utf-8")
    for name, fonts in _font_lists():
        (directory / name).write_text(json.dumps(fonts), "utf-8")
    for path in (directory, *directory.rglob("*")):
        path.chmod(0o755 if path.is_dir() else 0o644)  # another user reads it


def _font_lists() -> Iterator[tuple[str, dict]]:
    """What matplotlib wrote down of this machine's fonts: to look for them again takes seconds.

    Of them those that student code can see: matplotlib's own, and the system's.
    """
    homes = os.environ.get("MPLCONFIGDIR"), "~/.cache/matplotlib", "~/.matplotlib"
    shown = tuple(f"{path}/" for path in visible.FILES if "/fonts" in path)
    for home in filter(None, homes):
        for path in Path(home).expanduser().glob("fontlist-*.json"):
            with suppress(OSError, ValueError, KeyError, TypeError):
                fonts = json.loads(path.read_text("utf-8"))
                for kind in ("ttflist", "afmlist"):
                    fonts[kind] = [
                        font
                        for font in fonts[kind]
                        if not font["fname"].startswith("/") or font["fname"].startswith(shown)
                    ]
                yield path.name, fonts


def _by_module(exercises: Iterable[Exercise]) -> dict[str, set[str]]:
    found: dict[str, set[str]] = defaultdict(set)
    for exercise in exercises:
        module = exercise.reference.__module__
        if module.startswith("rlcourse."):
            found[module].add(exercise.reference.__name__)
    return found
