"""Where an honest answer in words may end up: moved by a program, or by a person's hand."""

import copy
import re
import textwrap

import classroom as room
from nbformat.v4 import new_code_cell, new_markdown_cell, new_raw_cell

SAID = "All sixteen are pushed up equally."
QUESTION = "applause"


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
