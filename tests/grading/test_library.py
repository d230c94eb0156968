"""The library that a submission may import holds nothing that solves an exercise of its lesson."""

import ast
import inspect
import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from shared import one_in

from rlcourse.checks.asking import wire
from rlcourse.checks.judging.exam import Exam, judge
from rlcourse.exercises import all as all_exercises
from rlcourse.grading.confinement import visible
from rlcourse.grading.running.library import write_library

LESSONS = sorted({exercise.lesson for exercise in all_exercises()})
SWEEP = Path(__file__).with_name("library_sweep.py")
ROOT = Path(__file__).parents[2]
# One function of the library fetches a model, to a directory that a case can name.
OFFLINE = {**os.environ, "HF_HUB_OFFLINE": "1"}


def agreeing(exam: Exam, outcomes) -> float:
    triples = zip(exam.cases, exam.expected, outcomes, strict=True)
    return sum(not judge(exam.exercise, *triple) for triple in triples) / len(exam.cases)


# Every function of the library gets the cases of every exercise, so a lesson of four comes first.
@pytest.mark.parametrize("lesson", one_in(20, LESSONS[12:] + LESSONS[:12]))
def test_no_function_of_the_students_library_solves_an_exercise(lesson, tmp_path):
    write_library(tmp_path / "library", [e for e in all_exercises() if e.lesson >= lesson])
    exams = {e.name: Exam(e, 1) for e in all_exercises() if e.lesson == lesson}
    questions = {
        name: {
            "parameters": list(inspect.signature(exam.exercise.reference).parameters),
            "cases": [case.question() for case in exam.cases],
        }
        for name, exam in exams.items()
    }
    (tmp_path / "questions").write_bytes(wire.dumps(questions))
    done = subprocess.run(
        [sys.executable, "-I", SWEEP, tmp_path / "library", json.dumps(visible.package_paths()),
         tmp_path / "questions", tmp_path / "answers"],
        capture_output=True, text=True, cwd=tmp_path, env=OFFLINE,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert int(done.stdout.split()[-2]) > 40
    solved = [
        (path.name, function)
        for path in (tmp_path / "answers").iterdir()
        for function, outcomes in wire.loads(path.read_bytes()).items()
        if agreeing(exams[path.name], outcomes) > 0.8
    ]
    assert solved == []


IMPORT_ALL = """
import importlib, json, pathlib, sys
library = pathlib.Path(sys.argv[1])
sys.path[:0], sys.path[len(sys.path):] = [str(library)], json.loads(sys.argv[2])
for path in sorted(library.rglob("*.py")):
    parts = path.relative_to(library).with_suffix("").parts
    importlib.import_module(".".join(parts).removesuffix(".__init__"))
"""


@pytest.mark.slow
def test_every_module_of_the_library_finds_what_it_imports(tmp_path):
    write_library(tmp_path, [])
    paths = json.dumps(visible.package_paths())
    command = [sys.executable, "-I", "-S", "-c", IMPORT_ALL, tmp_path, paths]
    done = subprocess.run(command, capture_output=True, text=True, cwd="/")
    assert done.returncode == 0, done.stderr


IMPORT_LINES = """
import json, sys
library, packages, lines = sys.argv[1], *map(json.loads, sys.argv[2:])
sys.path[:0], sys.path[len(sys.path):] = [library], packages
for line in lines:
    exec(line)
"""
ABSENT = ("rlcourse.doctor", "rlcourse.training.networks.value_head")  # last in their cells


def test_what_lessons_import_for_their_functions_is_there(tmp_path):
    """A line that fails takes those below it in its cell along."""
    write_library(tmp_path, [])
    lines = set()
    for text in (ROOT / "course" / "lessons").glob("*/lesson.md"):
        for cell in re.findall(r"^```python\n(.*?)^```", text.read_text("utf-8"), re.M | re.S):
            found = [n for n in ast.parse(cell).body if isinstance(n, ast.Import | ast.ImportFrom)]
            assert not any(ast.unparse(n).split()[1] in ABSENT for n in found[:-1])
            lines |= {ast.unparse(n) for n in found if ast.unparse(n).split()[1] not in ABSENT}
    assert "from rlcourse.bars import bar" in lines
    arguments = tmp_path, json.dumps(visible.package_paths()), json.dumps(sorted(lines))
    command = [sys.executable, "-I", "-S", "-c", IMPORT_LINES, *arguments]
    done = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
