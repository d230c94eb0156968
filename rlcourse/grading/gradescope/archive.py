"""Gradescope's archive for a lesson: scripts, the course as a wheel, the lesson, and the secret."""

import importlib.metadata
import io
import json
import shutil
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Iterator
from pathlib import Path

import nbformat
from nbformat import NotebookNode

import rlcourse
from rlcourse.authoring.notebooks import student_notebook
from rlcourse.courses import current
from rlcourse.courses.finding import clone_root
from rlcourse.errors import UserError
from rlcourse.files import replace_bytes
from rlcourse.grading.books.gradebook import Course, load_source
from rlcourse.grading.gradescope.preparing import RELEASE, SECRET, SETTINGS
from rlcourse.grading.judging.judge import LessonExam, course_secret

SCRIPTS = Path(__file__).parent
EPOCH = (1980, 1, 1, 0, 0, 0)  # the same lesson gives the same archive
SOURCES = (
    *("pyproject.toml", "setup.py", "README.md", "LICENSE", "rlcourse", "notebooks"),
    *("course/course.toml", "course/nbgrader_config.py", "course/lessons", "course/site"),
)  # of a clone, what its wheel is built from
NOT_IN_WHEELS = ("INSTALLER", "REQUESTED", "direct_url.json", "RECORD.jws")


def write_archive(wanted: str, course: Path | None, out: Path) -> dict:
    """Write the archive for a lesson to `out`; returns the settings that went into it."""
    opened = Course.of(course)
    lesson = opened.lesson(wanted)
    taught = current(opened.root)
    if taught.is_package:
        raise UserError(
            "Gradescope's archive holds rlcourse alone: a course of your own is not in it"
        )
    source = load_source(opened, lesson)
    release = student_notebook(source, lesson, opened.root / "nbgrader_config.py")
    secret = course_secret(opened.root)
    settings = {"lesson": lesson, **_points(release, LessonExam(release, secret, course=taught))}
    name, wheel = course_wheel()
    files = {
        "setup.sh": (SCRIPTS / "setup.sh").read_bytes(),
        "run_autograder": (SCRIPTS / "run_autograder").read_bytes(),
        "constraints.txt": "".join(f"{line}\n" for line in constraints()).encode(),
        name: wheel,
        SETTINGS: json.dumps(settings, indent=2).encode(),
        RELEASE: nbformat.writes(release).encode(),
        SECRET: secret,
    }
    replace_bytes(out, _zipped(files, executable=("setup.sh", "run_autograder")), mode=0o600)
    return settings


def _points(release: NotebookNode, exam: LessonExam) -> dict[str, dict[str, float]]:
    """The points of the exercises, which a program grades, and of the questions."""
    exercises = {e.name: float(e.points) for e in exam.exercises.values()}
    questions = {}
    for cell in release.cells:
        about = cell.metadata.get("nbgrader", {})
        if about.get("grade") and about["grade_id"] not in exam.exercises:
            questions[about["grade_id"]] = float(about["points"])
    return {"exercises": exercises, "questions": questions}


def constraints() -> Iterator[str]:
    """The versions installed here, with which the container is to judge as this machine does."""
    found = {}
    for package in importlib.metadata.distributions():
        name, version = package.metadata["Name"], package.version.partition("+")[0]
        if name and not name.startswith("rlcourse"):
            found[name.lower()] = f"{name}=={version}"
    for key in sorted(found):
        yield found[key]


def course_wheel() -> tuple[str, bytes]:
    """(file name, bytes) of rlcourse's wheel: built from the clone, or put together from what is
    installed, since no index has it."""
    root = clone_root()
    return _built(root) if root else _installed(importlib.metadata.distribution("rlcourse"))


def _built(root: Path) -> tuple[str, bytes]:
    """The wheel of a clone, built from a copy, so that nothing is left in the clone."""
    with tempfile.TemporaryDirectory(prefix="rlcourse-wheel-") as scratch:
        copy_sources(root, Path(scratch, "tree"))
        return wheel_of(Path(scratch, "tree"))


def copy_sources(root: Path, tree: Path) -> None:
    """Copy what the wheel of a clone is built from."""
    skip = shutil.ignore_patterns("__pycache__")
    for name in SOURCES:
        (tree / name).parent.mkdir(parents=True, exist_ok=True)
        if (root / name).is_dir():
            shutil.copytree(root / name, tree / name, ignore=skip)
        else:
            shutil.copy2(root / name, tree / name)


def wheel_of(tree: Path) -> tuple[str, bytes]:
    """(file name, bytes) of the wheel that such a copy gives."""
    with tempfile.TemporaryDirectory(prefix="rlcourse-wheel-") as scratch:
        command = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps"]
        command += ["--disable-pip-version-check", "--wheel-dir", scratch, str(tree)]
        if _has_setuptools():  # else pip fetches it
            command.append("--no-build-isolation")
        done = subprocess.run(command, capture_output=True, text=True)
        wheels = list(Path(scratch).glob("rlcourse-*.whl"))
        if done.returncode or not wheels:
            said = (done.stderr.strip() or done.stdout.strip() or "it said nothing").splitlines()
            raise UserError(f"the course's wheel was not built: {said[-1]}")
        return wheels[0].name, wheels[0].read_bytes()


def _has_setuptools() -> bool:
    try:
        return int(importlib.metadata.version("setuptools").partition(".")[0]) >= 77
    except importlib.metadata.PackageNotFoundError:
        return False


def _installed(package: importlib.metadata.Distribution) -> tuple[str, bytes]:
    """The wheel that an installed package came from: its files, without what installing added."""
    files = {}
    for file in package.files or ():
        added = file.name in NOT_IN_WHEELS or file.suffix == ".pyc" or ".." in file.parts
        if not added and not file.is_absolute():
            files[file.as_posix()] = Path(str(package.locate_file(file))).read_bytes()
    if "rlcourse/__init__.py" not in files:
        raise UserError("rlcourse is not installed as a package here: run this in a clone of it")
    return f"rlcourse-{rlcourse.__version__}-py3-none-any.whl", _zipped(files)


def _zipped(files: dict[str, bytes], executable: tuple[str, ...] = ()) -> bytes:
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in files.items():
            entry = zipfile.ZipInfo(name, EPOCH)
            entry.external_attr = (0o755 if name in executable else 0o644) << 16
            entry.compress_type = zipfile.ZIP_DEFLATED
            archive.writestr(entry, content)
    return made.getvalue()
