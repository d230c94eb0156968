"""`rlcourse check`: a notebook's checks, run in a fresh kernel and tabulated."""

import json
import sys

import nbformat
import pytest
from nbformat.v4 import new_code_cell, new_notebook

from rlcourse.authoring.runner import check_notebook, read_notebook
from rlcourse.errors import UserError

VERDICT = """\
from IPython.display import display
def verdict(name, score, unwritten=False, **more):
    found = dict(exercise=name, passed=score == 1, score=score, unwritten=unwritten, message=name)
    found |= more
    display({"application/vnd.rlcourse.check+json": found, "text/plain": name}, raw=True)
"""


def graded(name, source, points=4):
    metadata = {"grade": True, "grade_id": f"check_{name}", "points": points, "solution": False}
    return new_code_cell(source, metadata={"nbgrader": metadata})


@pytest.fixture
def save(tmp_path):
    def save(*cells):
        path = tmp_path / "lesson.ipynb"
        nbformat.write(new_notebook(cells=[new_code_cell(VERDICT), *cells]), path)
        return path

    return save


def test_every_check_gets_its_row_whatever_the_others_do(save):
    """Saved outputs count for nothing, and a demo tag keeps no check from running."""
    data = {"application/vnd.rlcourse.check+json": {"exercise": "x", "passed": True, "score": 1}}
    forged = graded("forged", "None")
    forged.outputs = [nbformat.v4.new_output("display_data", data=data)]
    tagged = graded("tagged", "verdict('tagged', 1.0)")
    tagged.metadata["tags"] = ["demo"]
    path = save(
        new_code_cell("1 / 0"),
        new_code_cell("raise SystemError", metadata={"tags": ["demo"]}),
        graded("right", "verdict('right', 1.0)", points=2),
        graded("partial", "verdict('partial', 0.25)"),
        graded("wrong", "verdict('wrong', 0.0)"),
        graded("blank", "verdict('blank', 0.0, unwritten=True)"),
        graded("upheld", "verdict('upheld', 1.0, once=['partial'])"),
        graded("imported", "verdict('imported', 0.0, borrowed=True)"),
        graded("broken", "undefined_name"),
        tagged,
        forged,
        graded("interpreter", f"import sys\nassert sys.executable == {sys.executable!r}"),
    )
    before = path.read_bytes()
    report = check_notebook(path, progress=False)
    assert [(row.exercise, row.status) for row in report.rows] == [
        ("right", "passed"),
        ("partial", "partly right"),
        ("wrong", "wrong"),
        ("blank", "not written yet"),
        ("upheld", "right, once `partial` is"),
        ("imported", "the library's own"),
        ("broken", "NameError: name 'undefined_name' is not defined"),
        ("tagged", "passed"),
        ("forged", "the check cell shows no result"),
        ("interpreter", "the check cell shows no result"),
    ]
    assert report.points == 2 + 0.25 * 4 + 4 + 4
    assert report.possible == 2 + 9 * 4
    assert not report.passed
    assert str(report).splitlines()[1].split() == ["partial", "1.0", "/", "4", "partly", "right"]
    assert str(report).split("\n\n")[1:] == ["partial", "wrong", "upheld", "imported"]
    assert path.read_bytes() == before  # the notebook is only read


@pytest.mark.slow
def test_a_cell_without_end_is_ended_and_has_its_row(save):
    path = save(graded("endless", "while True: pass"), graded("next", "verdict('next', 1.0)"))
    report = check_notebook(path, timeout=6, progress=False)
    assert report.rows[0].status == "TimeoutError: the cell ran longer than 6 seconds"
    assert [row.exercise for row in report.rows] == ["endless", "next"]


def test_a_kernel_that_dies_ends_the_run_with_a_row_for_every_check(save):
    path = save(
        graded("first", "verdict('first', 1.0)"),
        graded("deadly", "import os; os._exit(1)"),
        graded("last", "verdict('last', 1.0)"),
    )
    report = check_notebook(path, progress=False)
    assert [row.status for row in report.rows] == [
        "passed",
        "the kernel died here",
        "not run: the kernel died before",
    ]
    assert report.points == 4


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        (None, "there is no notebook"),
        ("{broken", "is not complete JSON"),
        ("[]", "is not a notebook of format 3 or 4"),
        ('{"nbformat": 4, "nbformat_minor": 5, "metadata": {}}', "of format 3 or 4"),
        (nbformat.writes(new_notebook()), "has no check cells"),
    ],
)
def test_a_file_that_is_no_lesson_is_named(tmp_path, content, sentence):
    path = tmp_path / "lesson.ipynb"
    if content is not None:
        path.write_text(content)
    with pytest.raises(UserError, match=sentence):
        check_notebook(path, progress=False)


def without_a_version(text):
    notebook = json.loads(text)
    return json.dumps({"cells": notebook["cells"], "metadata": None}).encode()


FOREIGN = {
    "a byte order mark": lambda text: text.encode("utf-8-sig"),
    "UTF-16": lambda text: text.encode("utf-16"),
    "no version": without_a_version,
}


@pytest.mark.parametrize("written", FOREIGN.values(), ids=FOREIGN)
def test_what_other_programs_write_is_read_as_grading_reads_it(save, written):
    from rlcourse.grading.handing_in.submission import parse

    path = save(graded("right", "verdict('right', 1.0)"))
    data = written(path.read_text("utf-8"))
    path = path.rename(path.with_suffix(".ipynb.txt"))
    path.write_bytes(data)
    read = read_notebook(path)
    assert [cell.source for cell in read.cells] == [cell.source for cell in parse(data)]
    assert read.cells[1].metadata.nbgrader.grade_id == "check_right"


def test_a_lesson_that_lies_in_its_folder_is_pointed_to(tmp_path):
    (tmp_path / "02_x").mkdir()
    (tmp_path / "02_x" / "02_x.ipynb").touch()
    with pytest.raises(UserError, match=r"no notebook .*02_x\.ipynb\. Did you mean .*02_x/02_x\.i"):
        check_notebook(tmp_path / "02_x.ipynb", progress=False)
