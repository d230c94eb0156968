"""The students' copy of the library: what a submission may import while it is graded.

It has this lesson's functions, and those of later lessons, as the stubs that students are given;
exercises, references, the builder and the grader are not in it at all.
"""

import shutil
from collections import defaultdict
from collections.abc import Iterable
from pathlib import Path

import rlcourse
from rlcourse.authoring.stubs import blank_functions
from rlcourse.checks.exercise import Exercise
from rlcourse.courses import Course, shipped
from rlcourse.exercises import all as all_exercises

PACKAGE = Path(rlcourse.__file__).parent
COPIED = (
    *("__init__.py", "bars.py", "errors.py", "hub.py", "installed.py", "intervals.py"),
    *("on_first_use.py", "pictures.py", "plots.py", "published.py"),
    *("algorithms", "tasks", "policy"),
)
STUDENTS_SIDE = tuple(
    f"checks/asking/{path.name}" for path in sorted((PACKAGE / "checks" / "asking").glob("*.py"))
)
RUNTIME = (
    *(f"confinement/{name}.py" for name in ("channel", "isolation", "syscalls")),
    "running/limits.py",
    *("untrusted/server.py", "untrusted/worker.py"),
)


def write_library(
    directory: Path, absent: Iterable[Exercise], packages: Iterable[Path] = ()
) -> None:
    """Write the package without the functions of `absent` into `directory`, for a server's path.

    `packages` are directories of other courses, whose modules go there too, without lessons.
    """
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
        (package / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(PACKAGE / name, package / name)
        for room in (package / name).relative_to(package).parents[:-1]:
            (package / room / "__init__.py").write_text('"""The untrusted side of grading."""\n')
    for name in ("student", "training"):
        (package / name).mkdir(exist_ok=True)
        noop = PACKAGE / "grading" / "untrusted" / f"noop_{name}.py"
        shutil.copy(noop, package / name / "__init__.py")
    for source in packages:
        _write_package(source, directory / source.name)
    for module, names in _by_module(absent).items():
        path = directory.joinpath(*module.split("."))
        path = path / "__init__.py" if path.is_dir() else path.with_suffix(".py")
        if not path.exists():  # tests that students write: their answers stand with the exercises
            continue
        path.write_text(blank_functions(path.read_text("utf-8"), names), "utf-8")
    for path in (directory, *directory.rglob("*")):
        path.chmod(0o755 if path.is_dir() else 0o644)  # another user reads it


def write_library_of(
    directory: Path, course: Course, lesson: str, asked: Iterable[Exercise]
) -> list[Path]:
    """Write the library for a lesson whose exercises are `asked`; returns what is to be hidden."""
    homes = {lesson.home for lesson in course.lessons} | {shipped().directory}
    absent = [*asked, *_not_yet_taught(course, lesson)]
    write_library(directory, absent, homes - {shipped().directory})
    return [PACKAGE, course.solutions, shipped().solutions, course.directory, *homes]


def _not_yet_taught(course: Course, lesson: str) -> list[Exercise]:
    """Exercises of this lesson and of later ones, in this course and in the lesson's original.

    A course may leave out lessons that come later in the original; their answers stay secret.
    """
    names = [one.name for one in course.lessons]
    begun = names.index(lesson) if lesson in names else 0
    found = _in_lessons(course, names[begun:])
    at_home = [one.name for one in shipped().lessons]
    if lesson in at_home and course is not shipped():
        after = at_home[at_home.index(lesson) :]
        found += _in_lessons(shipped(), [name for name in after if name not in names])
    return found


def _in_lessons(course: Course, names: list[str]) -> list[Exercise]:
    return [e for e in all_exercises(course, contests=True) if e.lesson in names]


def _write_package(source: Path, target: Path) -> None:
    """The modules of a course's package, without its lessons, notebooks and submissions."""
    stays = {"lessons", "source", "notebooks", "solutions", "submitted", "autograded"}
    for path in source.rglob("*.py"):
        inside = path.relative_to(source)
        homes = [source / home for home in inside.parents]
        packaged = all((home / "__init__.py").is_file() for home in homes)
        apart = inside.parts[0] in stays | {"nbgrader_config.py"}
        if packaged and not apart and not any(map(Path.is_symlink, [path, *homes[:-1]])):
            (target / inside).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(path, target / inside)


def _by_module(exercises: Iterable[Exercise]) -> dict[str, set[str]]:
    found: dict[str, set[str]] = defaultdict(set)
    for exercise in exercises:
        found[exercise.reference.__module__].add(exercise.reference.__name__)
    return found
