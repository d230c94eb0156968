"""Rebuilding: the student's words, the instructor's notebook."""

import copy
import json

import classroom as room
import pytest
from nbformat.v4 import new_code_cell, new_markdown_cell

from rlcourse.authoring.cells import cell_id
from rlcourse.grading.handing_in.submission import ELSEWHERE, Found, parse, rebuild
from rlcourse.grading.handing_in.untrusted_files import find_notebook, read_bytes
from rlcourse.grading.rejected import Rejected


@pytest.fixture(scope="module")
def release(template):
    return room.released(template)


def found(notebook) -> list[Found]:
    return parse(json.dumps(notebook).encode())


def sources(notebook):
    return [cell.source for cell in notebook.cells]


def test_a_blank_submission_is_the_release(release):
    assert sources(rebuild(release, found(release))) == sources(release)


def test_answers_are_taken_and_everything_graded_is_not(release):
    changed = room.with_answers(
        release, score_function="mine", applause="text", check_score_function="99"
    )
    changed.cells[0].source = "# Another title"
    rebuilt = rebuild(release, found(changed))
    assert room.cell_of(rebuilt, "score_function").source == "mine"
    assert room.cell_of(rebuilt, "applause").source == "text"
    assert room.cell_of(rebuilt, "check_score_function").source == "check(score_function)"
    assert rebuilt.cells[0].source == release.cells[0].source
    kept = [c for c in rebuilt.cells if "rlcourse" not in c.metadata]
    assert [c.metadata for c in kept] == [c.metadata for c in release.cells]
    assert [c.source for c in rebuilt.cells if "rlcourse" in c.metadata] == ["99"]


def test_cells_of_an_earlier_version_are_no_cells_of_the_student_s(release):
    """A lesson whose points were raised says so in its first cell; a demonstration was mended."""
    text, code = "# The policy gradient\n\n**12** points", "train(steps=10**9)"
    changed = copy.deepcopy(release)
    changed.cells[0] = new_markdown_cell(text, id=cell_id("markdown", text))
    changed.cells.insert(1, new_code_cell(code, id=cell_id("code", code, {cell_id("code", code)})))
    assert sources(rebuild(release, found(changed))) == sources(release)
    changed.cells[0].source += "\nMine."
    assert sources(rebuild(release, found(changed))) != sources(release)


def test_answers_are_found_by_cell_id_and_by_the_name_of_the_function(release):
    by_id = room.with_answers(release, score_function="by id")
    room.cell_of(by_id, "score_function").metadata = {}
    assert "by id" in sources(rebuild(release, found(by_id)))
    text = "def score_function(logits, action):\n    return 1"
    cells = [new_markdown_cell("notes"), new_code_cell("%time 1\n" + text)]
    rebuilt = rebuild(release, [Found(c.cell_type, c.source, "", "") for c in cells])
    assert room.cell_of(rebuilt, "score_function").source.endswith(text)


def test_a_notebook_without_any_answer_cell_is_the_wrong_one(release):
    with pytest.raises(Rejected) as rejected:
        rebuild(release, [Found("code", "print(1)", "", "")])
    assert rejected.value.status == "wrong notebook"


@pytest.mark.parametrize("name", ["03_baselines", "00_start_here"])
def test_the_notebook_of_another_lesson_is_the_wrong_one(release, name):
    path = room.REPOSITORY / "notebooks" / name / f"{name}.ipynb"
    with pytest.raises(Rejected, match="none of the cells that this lesson asks"):
        rebuild(release, parse(path.read_bytes()))


def test_added_text_and_answers_in_markdown_are_rewritten_and_unchanged_ones_are_not(release):
    changed = room.with_answers(release, applause="[x](javascript\\:alert(1))")
    changed = room.with_markdown(changed, "![x](http://evil/x.png)")
    rebuilt = rebuild(release, found(changed))
    assert "](" not in "".join(sources(rebuilt)[room.index_of(rebuilt, room.NAMES[0]) - 1 :][:1])
    assert "](" not in room.cell_of(rebuilt, "applause").source
    untouched = rebuild(release, found(release))
    assert room.cell_of(untouched, "applause") == room.cell_of(release, "applause")


FIRST, SECOND = room.NAMES[:2]


def without(notebook, grade_id):
    notebook.cells = [c for c in notebook.cells if c is not room.cell_of(notebook, grade_id)]
    return notebook


def functions_left_as_stubs(notebook):
    """What the last definition of each of the two functions leaves."""
    code = "\n".join(c.source for c in notebook.cells if c.cell_type == "code")
    return {
        name for name in (FIRST, SECOND)
        if "NotImplementedError" in code.rpartition(f"def {name}(")[2].partition("def ")[0]
    }  # fmt: skip


@pytest.mark.parametrize("stub", ["deleted", "left as it was", "emptied"])
def test_two_answers_in_one_cell_are_not_overridden_by_a_stub(release, stub):
    both = f"{room.solution(FIRST)}\n\n\n{room.solution(SECOND)}"
    changed = room.with_answers(release, **{FIRST: both})
    if stub == "deleted":
        without(changed, SECOND)
    elif stub == "emptied":
        room.cell_of(changed, SECOND).source = ""
    rebuilt = rebuild(release, found(changed))
    assert functions_left_as_stubs(rebuilt) == set()
    assert room.cell_of(rebuilt, SECOND).source in (ELSEWHERE, "")
    blank = rebuild(release, found(without(copy.deepcopy(release), SECOND)))
    assert functions_left_as_stubs(blank) == {FIRST, SECOND}


def test_a_helper_written_into_a_check_cell_is_kept_before_the_check(release):
    text = f"def helper(): pass\ncheck({FIRST})"
    changed = room.with_answers(release, **{f"check_{FIRST}": text})
    twin = copy.deepcopy(room.cell_of(changed, f"check_{FIRST}"))
    twin.source = f"check({FIRST})"  # run once more: nothing of the student's
    changed.cells.append(twin)
    rebuilt = rebuild(release, found(changed))
    at = room.index_of(rebuilt, f"check_{FIRST}")
    assert rebuilt.cells[at].source == f"check({FIRST})"
    assert rebuilt.cells[at - 1].source == text and "nbgrader" not in rebuilt.cells[at - 1].metadata
    assert len(rebuilt.cells) == len(release.cells) + 1


def test_a_notebook_of_format_3_is_read(release):
    cells = [
        {"cell_type": "code", "input": cell.source, "metadata": cell.metadata, "outputs": []}
        if cell.cell_type == "code"
        else {"cell_type": cell.cell_type, "source": cell.source, "metadata": cell.metadata}
        for cell in room.with_answers(release, **{FIRST: "mine"}).cells
    ]
    old = {"nbformat": 3, "nbformat_minor": 0, "metadata": {}, "worksheets": [{"cells": cells}]}
    rebuilt = rebuild(release, parse(json.dumps(old).encode()))
    assert room.cell_of(rebuilt, FIRST).source == "mine"
    with pytest.raises(Rejected, match="format 3 or 4"):
        parse(b'{"worksheets": [1]}')


def test_outputs_of_25_mebibytes_are_no_reason_to_refuse(release, tmp_path):
    big = copy.deepcopy(release)
    picture = {"output_type": "display_data", "data": {"image/png": "A" * 25 * 2**20}}
    room.cell_of(big, FIRST).outputs = [picture | {"metadata": {}}]
    (tmp_path / "x.ipynb").write_text(json.dumps(big))
    assert len(parse(read_bytes(tmp_path, "x.ipynb"))) == len(release.cells)
    with pytest.raises(Rejected, match="too many parts"):
        parse(b'{"cells": [' + b"[]," * 2_000_001 + b"]}")


@pytest.mark.parametrize(
    "names, wanted",
    [
        (["02_x.ipynb", "other.ipynb"], "02_x.ipynb"),
        (["02_X.IPYNB"], "02_X.IPYNB"),
        (["02_x (1).ipynb", "._02_x (1).ipynb", ".ipynb_checkpoints"], "02_x (1).ipynb"),
        (["02_x-1.ipynb", "scratch.ipynb"], "02_x-1.ipynb"),
        (["02_x.ipynb.txt", "._02_x.ipynb"], "02_x.ipynb.txt"),
        (["02_x.txt", "._02_x.ipynb"], "there is no notebook; expected 02_x.ipynb"),
        (["a.ipynb", "b.ipynb"], "2 notebooks: hand in the right one alone, or rename it to 02_x"),
    ],
)  # fmt: skip
def test_the_notebook_is_found_whatever_a_browser_made_of_its_name(tmp_path, names, wanted):
    for name in names:
        (tmp_path / name).touch()
    try:
        assert find_notebook(tmp_path, "02_x") == wanted
    except Rejected as rejected:
        assert wanted in rejected.reason
