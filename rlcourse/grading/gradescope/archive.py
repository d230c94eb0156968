"""Gradescope's archive for a lesson: scripts, the course as a wheel, the lesson, and the secret."""

import importlib.metadata
import importlib.util
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

from rlcourse.authoring.notebooks import student_notebook
from rlcourse.courses import current
from rlcourse.courses.finding import clone_root
from rlcourse.errors import UserError
from rlcourse.files import replace_bytes
from rlcourse.grading.books.gradebook import Course, load_source
from rlcourse.grading.gradescope.preparing import RELEASE, SECRET, SETTINGS
from rlcourse.grading.judging.judge import LessonExam
from rlcourse.grading.judging.secret import course_secret

SCRIPTS = Path(__file__).parent
EPOCH = (1980, 1, 1, 0, 0, 0)  # the same lesson gives the same archive
SOURCES = (
    *("pyproject.toml", "setup.py", "README.md", "LICENSE", "rlcourse", "notebooks"),
    *("course/course.toml", "course/nbgrader_config.py", "course/lessons"),
)  # of a clone, what its wheel is built from


def write_archive(wanted: str, course: Path | None, out: Path) -> dict:
    """Write the archive for a lesson to `out`; returns the settings that went into it."""
    opened = Course.of(course)
    lesson = opened.lesson(wanted)
    taught = current(opened.root)
    if taught.is_package:
        raise UserError(
            "a course of your own cannot be packed for Gradescope: collect its notebooks here"
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
    """(file name, bytes) of rlcourse's wheel, since no index has it: built from a copy of the
    clone, so that nothing is left in the clone itself."""
    root = clone_root()
    if root is None:
        raise UserError("Gradescope's archive is made in a clone of the course: run this in one")
    with tempfile.TemporaryDirectory(prefix="rlcourse-wheel-") as scratch:
        tree = Path(scratch, "tree")
        for name in SOURCES:
            (tree / name).parent.mkdir(parents=True, exist_ok=True)
            if (root / name).is_dir():
                skip = shutil.ignore_patterns("__pycache__")
                shutil.copytree(root / name, tree / name, ignore=skip)
            else:
                shutil.copy2(root / name, tree / name)
        command = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps"]
        command += ["--disable-pip-version-check", "--wheel-dir", scratch, str(tree)]
        if importlib.util.find_spec("setuptools"):  # else pip fetches it
            command.append("--no-build-isolation")
        done = subprocess.run(command, capture_output=True, text=True)
        wheels = list(Path(scratch).glob("rlcourse-*.whl"))
        if done.returncode or not wheels:
            said = (done.stderr.strip() or done.stdout.strip() or "it said nothing").splitlines()
            raise UserError(f"the course's wheel was not built: {said[-1]}")
        return wheels[0].name, wheels[0].read_bytes()


def _zipped(files: dict[str, bytes], executable: tuple[str, ...] = ()) -> bytes:
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in files.items():
            entry = zipfile.ZipInfo(name, EPOCH)
            entry.external_attr = (0o755 if name in executable else 0o644) << 16
            entry.compress_type = zipfile.ZIP_DEFLATED
            archive.writestr(entry, content)
    return made.getvalue()
