"""Answers in words: wherever they are in the notebook, a person sees and grades them."""

import copy
import json
import re
import textwrap

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


def at_the_end(notebook):
    notebook.cells.append(new_markdown_cell(SAID))
    return notebook


def as_another_kind(kind, notebook, **more):
    marks = answer(notebook).metadata
    cell = new_code_cell(SAID) if kind == "code" else new_raw_cell(SAID)
    cell.update(metadata=marks, **more)
    return replaced(cell, notebook)


def beside(source, kind=new_code_cell):
    return lambda notebook: put(kind(source), notebook, 1)


def edited(name, edit):
    def move(notebook):
        cell = room.cell_of(notebook, name)
        cell.source = edit(cell.source)
        return notebook

    return move


def merged(by):
    """With the cell above it or below it."""

    def move(notebook):
        at = room.index_of(notebook, QUESTION)
        texts = [notebook.cells[at + by].source, SAID]
        notebook.cells[at + by].source = "\n\n".join(texts[::-by])
        del notebook.cells[at]
        return notebook

    return move


def flattened(notebook):
    """In one cell of code, as a converter to a script has it."""
    answer(notebook).source = SAID
    prose = re.compile("^", re.MULTILINE)
    notebook.cells[:] = [new_code_cell("\n\n".join(
        c.source if c.cell_type == "code" else prose.sub("# ", c.source) for c in notebook.cells
    ))]  # fmt: skip
    return notebook


def rewrapped(notebook):
    """By a formatter, which also writes emphasis in another way."""
    for cell in notebook.cells:
        if cell.cell_type == "markdown":
            cell.source = "\n".join(textwrap.wrap(cell.source, 70)).replace("*", "_")
    return put(new_markdown_cell(SAID), notebook, 1)


def in_the_first_cell_of_code(notebook):
    next(c for c in notebook.cells if "import torch" in c.source).source += f"\n# {SAID}"
    return notebook


FIRST, CHECK = room.NAMES[0], f"check_{room.NAMES[0]}"
MOVES = {
    "deleted and typed again": lambda n: replaced(new_markdown_cell(SAID), n),
    "in a new cell above the question": lambda n: put(new_markdown_cell(f"## {SAID}"), n, -1),
    "in a copy of its cell": copied,
    "turned into code": lambda n: as_another_kind("code", n, id=answer(n).id),
    "turned into raw text": lambda n: as_another_kind("raw", n, id=answer(n).id),
    "in the question's own cell": in_the_question,
    "at the end": at_the_end,
    "at the top": lambda n: (n.cells.insert(0, new_markdown_cell(SAID)), n)[1],
    "merged with the question": merged(-1),
    "merged with what comes next": merged(1),
    "flattened": flattened,
    "rewrapped": rewrapped,
    **{f"in a cell with {name}": beside(text, new_markdown_cell) for name, text in {
        "nothing else": SAID, "a quotation": f"> {SAID}", "an item": f"- {SAID}",
        "a table": f"| a |\n|---|\n| {SAID} |", "a fence": f"```\n{SAID}\n```",
        "HTML": f"<details><summary>a</summary>{SAID}</details>", "a remark": f"<!-- {SAID} -->",
        "a picture": f"![a](data:image/png;base64,{'A' * 300_000})\n{SAID}",
    }.items()},
    **{f"in code, {name}": beside(text) for name, text in {
        "printed": f"print('''{SAID}''')", "under a magic": f"%%markdown\n{SAID}",
        "under Databricks' magic": f"%md {SAID}", "as Colab's text": f"#@markdown {SAID}",
        "as Colab's title": f"# @title {SAID}", "as VS Code's cell": f"# %% [markdown]\n# {SAID}",
        "by the shell": f"!echo '{SAID}'", "in a file": f"%%writefile a.md\n{SAID}",
        "under a name": f"said: str = '{SAID}'", "in a branch": f"if True:\n    print('{SAID}')",
        "in a docstring": f"def said():\n    '''{SAID}'''", "behind code": f"x = 1  # {SAID}",
        "in a class": f"class Said:\n    '''{SAID}'''", "added up": f"a = ''\na += '{SAID}'",
        "returned": f"def said():\n    return '{SAID}'", "asserted": f"assert 1, '{SAID}'",
    }.items()},
    "in a comment below a function": edited(FIRST, lambda s: f"{s}\n\n# {SAID}"),
    "in a comment above a function": edited(FIRST, lambda s: f"# {SAID}\n{s}"),
    "in a comment in a function": edited(FIRST, lambda s: f"{s}\n    # {SAID}"),
    "in a function's docstring": edited(FIRST, lambda s: s.replace('"""', f'"""{SAID} ', 1)),
    "in a function that it breaks": edited(FIRST, lambda s: f"{s}\n{SAID}"),
    "in a comment of a broken function": edited(FIRST, lambda s: f"{s} (\n    # {SAID}"),
    "in the cell of a check": edited(CHECK, lambda s: f"{s}\n{SAID}"),
    "in place of a check": edited(CHECK, lambda s: SAID),
    "behind a check": edited(CHECK, lambda s: f"{s}  # {SAID}"),
    "in the first cell of code": in_the_first_cell_of_code,
}  # fmt: skip


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
