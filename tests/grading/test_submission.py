"""Rebuilding: the student's words, the instructor's notebook."""

import copy
import json

import classroom as room
import pytest
from nbformat.v4 import new_code_cell, new_markdown_cell

from rlcourse.grading.submission import Found, Rejected, parse, rebuild, without_magics


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
    assert [c.metadata for c in rebuilt.cells] == [c.metadata for c in release.cells]


def test_an_import_added_to_the_lessons_own_cell_stands(release):
    changed = copy.deepcopy(release)
    cell = next(c for c in changed.cells if c.cell_type == "code")
    cell.source += "\nimport math"
    assert any("import math" in source for source in sources(rebuild(release, found(changed))))


def test_added_cells_stay_behind_the_cell_they_followed(release):
    changed = room.with_code(release, "def helper(): pass", before="check_score_function")
    rebuilt = rebuild(release, found(changed))
    at = room.index_of(rebuilt, "check_score_function")
    assert rebuilt.cells[at - 1].source == "def helper(): pass"
    assert rebuilt.cells[at - 2].metadata.nbgrader.grade_id == "score_function"


def test_of_two_definitions_the_later_one_before_the_check_counts(release):
    changed = room.with_answers(release, score_function="first = 1")
    twin = copy.deepcopy(room.cell_of(changed, "score_function"))
    twin.source = "second = 2"
    changed.cells.insert(room.index_of(changed, "check_score_function"), twin)
    texts = sources(rebuild(release, found(changed)))
    assert texts.index("first = 1") < texts.index("second = 2")
    assert texts.index("second = 2") < texts.index("check(score_function)")


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


def test_added_text_and_answers_in_markdown_are_rewritten_and_unchanged_ones_are_not(release):
    changed = room.with_answers(release, applause="[x](javascript\\:alert(1))")
    changed = room.with_markdown(changed, "![x](http://evil/x.png)")
    rebuilt = rebuild(release, found(changed))
    assert "](" not in "".join(sources(rebuilt)[room.index_of(rebuilt, room.NAMES[0]) - 1 :][:1])
    assert "](" not in room.cell_of(rebuilt, "applause").source
    untouched = rebuild(release, found(release))
    assert room.cell_of(untouched, "applause") == room.cell_of(release, "applause")


def test_a_cell_of_blank_lines_is_read_at_once(release):
    """Before, each of its lines was searched to the end of the cell: eight minutes."""
    changed = room.with_code(release, "\n" * 150_000 + "%time x\n  !ls\n\n%%capture\ny = 1")
    rebuilt = rebuild(release, found(changed))
    assert any(cell.source.endswith("y = 1") for cell in rebuilt.cells)
    assert without_magics("a\n  !ls\n\n%time b") == "a\n  pass\n\npass"
