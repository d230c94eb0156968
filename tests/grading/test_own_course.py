"""An instructor's own lesson is graded like ours: its function is in a package of its own, and
neither that package's answers nor rlcourse's are in a submission's reach."""

import copy
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import classroom as room
import nbformat
import pytest
from nbformat.v4 import new_code_cell
from small_courses import forgotten_afterwards

from rlcourse.authoring.builder import build
from rlcourse.courses import shipped
from rlcourse.courses.creating import TEMPLATE, new_course
from rlcourse.grading.running.library import write_library

pytestmark = pytest.mark.slow

LESSON, NAME, POINTS = "01_critics", "explained_variance", 3.0
RIGHT = """\
def explained_variance(values, returns):
    total = returns.var(correction=0)
    share = 1 - (returns - values).var(correction=0) / total
    return torch.where(total > 0, share, torch.zeros_like(total))
"""
WRONG = RIGHT.replace("(returns - values).var(correction=0)", "(returns - values).square().mean()")
MISTAKE = "the mean squared error in place of the variance of the errors"
# Each finds something that would solve the exercise, or says nothing.
SPIES = {
    "by import": """
import ours, ours.functions, inspect
body = inspect.getsource(ours.functions).split("raise NotImplementedError")[0]
if "correction=0" in body: print("LEAK", body)
try: print("LEAK", ours.functions.explained_variance(torch.arange(3.0), torch.arange(3.0)))
except NotImplementedError: print("a stub")
for name in ("ours.lessons", "ours.nbgrader_config", "ours.lessons.01_critics.explained_variance",
             "course", "rlcourse.courses", "rlcourse.authoring", "rlcourse.checks.exercise"):
    try: print("LEAK", __import__(name))
    except ImportError: pass
""",
    "by path": """
import os
for path in ("OWN", "OWN/lessons/01_critics/explained_variance.py", "OWN/functions.py",
             "OWN/solutions", "OWN/source", "SHIPPED", "SHIPPED/lessons/06_grpo/grpo_loss.py",
             "SHIPPED/lessons/06_grpo/grpo_loss.md", "SOLUTIONS/06_grpo.ipynb"):
    try: print("LEAK", path, os.listdir(path) if os.path.isdir(path) else open(path).read(9))
    except OSError: pass
print("looked")
""",
    "by search": """
import itertools, os, sys, ours
looked, library = 0, os.path.dirname(os.path.dirname(ours.__file__))
places = ("/", os.path.dirname(library), library, os.getcwd(), *sys.path, "OWN", "SHIPPED")
for root, folders, files in itertools.chain(*map(os.walk, places)):
    folders[:] = [f for f in folders if os.path.join(root, f) not in ("/proc", "/sys")]
    for name in files:
        looked += 1
        if name in ("lesson.md", "course.toml", "mistakes.md", "nbgrader_config.py") or (
            name.startswith((LESSON, "explained_variance", "grpo_loss", "06_grpo"))):
            print("LEAK", root, name)
        if name == "functions.py" and root.endswith("ours"):
            if "unexplained" in open(os.path.join(root, name)).read(): print("LEAK", root)
print("looked" if looked > 1000 else "LEAK: it looked at nothing")
""".replace("LESSON", repr(LESSON)),
}  # fmt: skip
PROGRAM = """
import json, pathlib, sys
sys.path.insert(0, {repository!r})
from rlcourse.grading.engine import grade
from rlcourse.grading.confinement import isolation, probing
missing = sorted({{*isolation.LAYERS}} - {{*probing.probe().standing}})
report = grade({lesson!r}, course=pathlib.Path({course!r}))
json.dump({{"missing": missing, "rows": report.as_json()["submissions"]}}, sys.stdout)
"""


def hand_in(course: Path, student: str, answer: str, spy: str = "") -> None:
    notebook = nbformat.read(course / "notebooks" / LESSON / f"{LESSON}.ipynb", as_version=4)
    notebook = copy.deepcopy(notebook)
    at = next(i for i, cell in enumerate(notebook.cells) if cell.id == NAME)
    if answer:
        notebook.cells[at].source = answer
    if spy:
        paths = {"OWN": course, "SHIPPED": shipped().directory, "SOLUTIONS": shipped().solutions}
        for word, path in paths.items():
            spy = spy.replace(word, str(path))
        notebook.cells.insert(at, new_code_cell(spy))
    path = course / "submitted" / student / LESSON / f"{LESSON}.ipynb"
    path.parent.mkdir(parents=True)
    nbformat.write(notebook, path)


def said_in(course: Path, student: str) -> str:
    path = course / "autograded" / student / LESSON / f"{LESSON}.ipynb"
    cells = nbformat.read(path, as_version=4).cells
    outputs = [output for cell in cells for output in cell.get("outputs", [])]
    return "\n".join(o.get("text") or str(o.get("data") or o.get("evalue")) for o in outputs)


@pytest.fixture(scope="module")
def graded(reachable):
    """(the course's directory, {student: row}) of a batch that somebody graded."""
    home = reachable / "own-course"
    with forgotten_afterwards("ours"):
        course = new_course(home / "ours") / "ours"
        build([LESSON], root=course, progress=False)
    (course / "solutions").mkdir()
    shutil.copy(course / "source" / LESSON / f"{LESSON}.ipynb", course / "solutions")
    hand_in(course, "solver", RIGHT)
    hand_in(course, "errs", WRONG)
    hand_in(course, "blank", "")
    hand_in(course, "importer", "from ours.functions import explained_variance")
    for name, spy in SPIES.items():
        hand_in(course, name.replace(" ", "-"), RIGHT, spy)
    program = PROGRAM.format(repository=str(room.REPOSITORY), lesson=LESSON, course=str(course))
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, cwd="/",
        env={"HOME": str(home), "PATH": os.environ["PATH"], "OMP_NUM_THREADS": "1"}, timeout=1800,
    )  # fmt: skip
    if "nothing was graded" in done.stderr:
        pytest.skip(done.stderr.strip()[-300:])
    assert done.returncode == 0, done.stderr[-2000:]
    said = json.loads(done.stdout)
    if {"mount", "landlock"} <= {*said["missing"]}:
        pytest.skip(f"this machine cannot hide files: {said['missing']}")
    return course, {row["student"]: row for row in said["rows"]}


def test_the_batch_is_graded_and_the_mistake_is_named(graded):
    course, rows = graded
    others = {student: row["status"] for student, row in rows.items() if row["status"] != "graded"}
    assert others == {"importer": "imported"}
    assert rows["solver"]["score"] == POINTS and rows["blank"]["score"] == 0
    assert 0 < rows["errs"]["score"] <= POINTS / 2
    assert rows["errs"]["exercises"][NAME]["mistake"] == MISTAKE
    assert MISTAKE in said_in(course, "errs")


def test_the_function_cannot_be_imported_from_its_package(graded):
    assert graded[1]["importer"]["score"] == 0


@pytest.mark.parametrize("spy", SPIES)
def test_no_answer_is_in_reach(graded, spy):
    course, rows = graded
    student = spy.replace(" ", "-")
    said = said_in(course, student)
    assert "LEAK" not in said and ("looked" in said or "a stub" in said), said
    assert rows[student]["score"] == POINTS  # it ran to its end


def test_only_modules_are_copied_whatever_lies_in_the_package(tmp_path):
    """Even if lessons are packages, or data and links are next to modules."""
    package = tmp_path / "own_course"
    shutil.copytree(TEMPLATE / "own_course", package)
    for name in ("lessons", "lessons/01_critics", "submitted", "tools", "tools/lessons"):
        (package / name).mkdir(exist_ok=True)
        (package / name / "__init__.py").touch()
    (package / "tools" / "answers.json").write_text("{}")
    (package / "tools" / "linked.py").symlink_to(package / "functions.py")
    write_library(tmp_path / "library", [], [package])
    found = tmp_path / "library" / "own_course"
    assert sorted(str(path.relative_to(found)) for path in found.rglob("*.*")) == [
        *("__init__.py", "functions.py", "tools/__init__.py", "tools/lessons/__init__.py"),
    ]  # fmt: skip
