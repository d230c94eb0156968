"""Answers in words: wherever they are in the notebook, a person sees and grades them."""

import copy
import json

import classroom as room
import pytest
from moved_answers import MOVES, QUESTION, SAID, answer, at_the_end, put, replaced
from nbformat.v4 import new_code_cell, new_markdown_cell, new_raw_cell

from rlcourse.grading.books.gradebook import questions
from rlcourse.grading.handing_in.submission import parse, rebuild


@pytest.fixture(scope="module")
def release(template):
    return room.released(template)


@pytest.mark.parametrize("move", MOVES.values(), ids=MOVES)
@pytest.mark.parametrize("with_ids", [True, False])
def test_an_answer_that_moved_is_shown_in_its_place_and_waits(release, move, with_ids):
    moved = move(copy.deepcopy(release))
    if not with_ids:  # as a converter leaves it
        for cell in moved.cells:
            cell.metadata = {}
            cell.pop("id")
    rebuilt = rebuild(release, parse(json.dumps(moved).encode()))
    assert questions(rebuilt, {})[QUESTION]["answered"]
    assert answer(rebuilt).source.count(SAID.rstrip(".")) == 1


@pytest.mark.parametrize("kind", [new_markdown_cell, new_code_cell, new_raw_cell])
@pytest.mark.parametrize("said", ["0", "no", "👍", "所有十六个都一样。", "LESSON"])
def test_the_shortest_answer_in_a_cell_of_another_kind_waits(release, kind, said):
    """Also one in another language, and one that is a line of the lesson."""
    lesson = next(c for c in release.cells if c.cell_type == "markdown")
    said = said.replace("LESSON", lesson.source.splitlines()[0])
    cell = kind(said, id=answer(release).id)
    rebuilt = rebuild(release, parse(json.dumps(replaced(cell, copy.deepcopy(release))).encode()))
    assert questions(rebuilt, {})[QUESTION]["answered"]


def untouched(notebook):
    return notebook


def with_the_placeholder_again(notebook):
    return put(new_markdown_cell(answer(notebook).source), notebook, 1)


def with_blank_cells(notebook):
    return put(new_markdown_cell(" \n***\n"), put(new_code_cell(""), notebook))


def with_a_broken_function(notebook):
    room.cell_of(notebook, room.NAMES[0]).source += "\n    return ("
    return notebook


NOTHING = [
    *(untouched, with_the_placeholder_again, with_blank_cells, with_a_broken_function),
]


@pytest.mark.parametrize("change", NOTHING)
def test_where_nothing_was_written_the_answer_is_blank(release, change):
    rebuilt = rebuild(release, parse(json.dumps(change(copy.deepcopy(release))).encode()))
    assert not questions(rebuilt, {})[QUESTION]["answered"]


def test_an_answer_in_its_place_is_shown_alone(release):
    moved = at_the_end(room.with_answers(release, **{QUESTION: "Mine"}))
    assert answer(rebuild(release, parse(json.dumps(moved).encode()))).source == "Mine"
    emptied = at_the_end(room.with_answers(release, **{QUESTION: ""}))
    assert SAID in answer(rebuild(release, parse(json.dumps(emptied).encode()))).source
