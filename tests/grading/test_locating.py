"""Answers in another cell than their own: judged, or the message says where they are."""

import json

import classroom as room
import pytest
from nbformat.v4 import new_code_cell

from rlcourse.checks.asking.calling import Failure
from rlcourse.grading.handing_in.submission import bound_in, parse, rebuild
from rlcourse.grading.judging.judge import LessonExam
from rlcourse.grading.running.answers import CellAnswer
from rlcourse.grading.running.steps import ExamRequest, Transcript

FIRST, LAST = room.NAMES[0], room.NAMES[-1]


@pytest.fixture(scope="module")
def release(template):
    return room.released(template)


@pytest.fixture(scope="module")
def exam(release):
    return LessonExam(release, b"secret")


def rebuilt(release, *added: str, **answers: str):
    changed = room.with_answers(release, **answers)
    changed.cells += [new_code_cell(source) for source in added]
    return rebuild(release, parse(json.dumps(changed).encode()))


def order(exam, notebook) -> list[str]:
    steps = exam.steps(notebook)
    return [step.name if isinstance(step, ExamRequest) else step.source for step in steps]


def test_what_is_all_written_at_the_end_is_judged_there(release, exam):
    everything = "\n\n".join(map(room.solution, room.NAMES))
    found = order(exam, rebuilt(release, everything))
    assert found[-len(room.NAMES) :] == [f"check_{name}" for name in room.NAMES]
    assert found[-len(room.NAMES) - 1] == everything
    assert not any("raise NotImplementedError" in step for step in found[:-1] if "def " in step)


@pytest.mark.parametrize(
    "source",
    ["if True:\n    def NAME(x): pass", "NAME = lambda x: x", "from m import NAME",
     "from m import y as NAME", "try:\n    pass\nfinally:\n    NAME = 1", "for NAME in []: pass",
     "async def NAME(): pass", "class NAME: pass", "(NAME := 3)", "%time NAME = 1\nNAME = 2"],
)  # fmt: skip
def test_a_function_has_many_ways_to_come_about(release, exam, source):
    source = source.replace("NAME", FIRST)
    assert FIRST in bound_in(source)
    assert order(exam, rebuilt(release, source))[-1] == f"check_{FIRST}"


@pytest.mark.parametrize(
    "source", ["def f():\n    NAME = 1", "NAME(3)", "print('NAME')", "x.NAME=1"]
)
def test_a_use_or_a_local_name_is_none(source):
    assert FIRST not in bound_in(source.replace("NAME", FIRST))


def message(exam, notebook, transcript) -> str:
    return exam.judge(transcript, notebook)[f"check_{FIRST}"].message


def test_nobody_is_told_that_what_stands_elsewhere_is_not_written(release, exam):
    source = f"# all my answers\nprint(undefined)\ndef {FIRST}(logits, action): return 1"
    notebook = rebuilt(release, source)
    cell = f"cell {notebook.cells[-1].id}"
    failed = CellAnswer(error=Failure("NameError", "undefined"))
    said = message(exam, notebook, Transcript(cells={cell: failed}))
    assert "begins with `# all my answers`" in said and "ended in NameError: undefined" in said
    assert "was not reached" in message(exam, notebook, Transcript())
    syntax = rebuilt(release, f"def {FIRST}(:\n    pass", **{FIRST: "x = 1"})
    broken = CellAnswer(error=Failure("SyntaxError", "invalid syntax"))
    said = message(exam, syntax, Transcript(cells={f"cell {syntax.cells[-1].id}": broken}))
    assert "ended in SyntaxError" in said
