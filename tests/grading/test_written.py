"""Answers in words: wherever they are in the notebook, a person sees and grades them."""

import copy
import json

import classroom as room
import pytest
from nbformat.v4 import new_code_cell, new_markdown_cell, new_raw_cell

from rlcourse.grading.books.gradebook import questions
from rlcourse.grading.handing_in.submission import parse, rebuild

SAID = "All sixteen are pushed up equally."
QUESTION = "applause"


@pytest.fixture(scope="module")
def release(template):
    return room.released(template)


def answer(notebook):
    return room.cell_of(notebook, QUESTION)


def put(cell, notebook, by: int = 0):
    """The notebook with `cell` before its answer, or `by` cells further down."""
    notebook.cells.insert(room.index_of(notebook, QUESTION) + by, cell)
    return notebook


def replaced(cell, notebook):
    notebook.cells[room.index_of(notebook, QUESTION)] = cell
    return notebook


def copied(notebook):
    twin = copy.deepcopy(answer(notebook))
    twin.source = SAID
    return put(twin, notebook, 1)


def in_the_question(notebook):
    notebook.cells[room.index_of(notebook, QUESTION) - 1].source += f"\n\n{SAID}"
    return notebook


def below_a_function(notebook):
    room.cell_of(notebook, room.NAMES[0]).source += f"\n\n# {SAID}"
    return notebook


def into_a_check(notebook):
    room.cell_of(notebook, f"check_{room.NAMES[0]}").source += f"\n{SAID}"
    return notebook


def at_the_end(notebook):
    notebook.cells.append(new_markdown_cell(SAID))
    return notebook


def as_another_kind(kind, notebook, **more):
    marks = answer(notebook).metadata
    cell = new_code_cell(SAID) if kind == "code" else new_raw_cell(SAID)
    cell.update(metadata=marks, **more)
    return replaced(cell, notebook)


MOVES = {
    "deleted and typed again": lambda n: replaced(new_markdown_cell(SAID), n),
    "in a new cell under its own": lambda n: put(new_markdown_cell(SAID), n, 1),
    "in a new cell above the question": lambda n: put(new_markdown_cell(f"## {SAID}"), n, -1),
    "in a copy of its cell": copied,
    "turned into code": lambda n: as_another_kind("code", n, id=answer(n).id),
    "turned into raw text": lambda n: as_another_kind("raw", n, id=answer(n).id),
    "in the question's own cell": in_the_question,
    "in a comment below a function": below_a_function,
    "in the cell of a check": into_a_check,
    "printed": lambda n: put(new_code_cell(f"print('''{SAID}''')"), n, 1),
    "under a magic": lambda n: put(new_code_cell(f"%%markdown\n{SAID}"), n, 1),
    "at the end": at_the_end,
}


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
