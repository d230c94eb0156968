"""Submissions that attack as files: their names, their bytes, their cells and metadata."""

import copy
import json
import os

import classroom as room
from attacks import ATTACKS, TOTAL, Attack, Field, by_notebook
from moved_answers import MOVES
from nbformat.v4 import new_output

SCRIPT = "<script>alert('x')</script><img src=x onerror=alert(1)>"


def handed_in(name: str, kind: str, status=None, deserved=0.0, waits=False):
    """An attack by how the file is handed in; the function returns a notebook, bytes, or None."""

    def register(make):
        def write(field: Field, student: str) -> None:
            made = make(field, room.submit(field.course, student, ""))
            if made is not None:
                room.submit(field.course, student, made)

        ATTACKS.append(Attack(name, kind, write, deserved, status, waits))
        return make

    return register


def bytes_of(notebook) -> bytes:
    return json.dumps(notebook).encode()


@handed_in("a link to the password file", "files", "refused")
def _link(field, path):
    path.unlink()
    path.symlink_to("/etc/passwd")


@handed_in("a link to a perfect neighbor", "files", "refused")
def _link_to_neighbor(field, path):
    path.unlink()
    path.symlink_to(room.submit(field.course, "a-neighbor", field.perfect))


@handed_in("links and pages beside the notebook", "files", "graded")
def _siblings(field, path):
    (path.parent / "passwd.txt").symlink_to("/etc/passwd")
    (path.parent / "endless.bin").symlink_to("/dev/zero")
    (path.parent / "page.html").write_text(SCRIPT)
    (path.parent / "rlcourse.py").write_text("raise SystemExit")
    return field.blank


@handed_in("a named pipe", "files", "refused")
def _pipe(field, path):
    path.unlink()
    os.mkfifo(path)


by_notebook(
    "an enormous notebook",
    "files",
    lambda field: bytes_of(field.perfect) + b" " * (65 * 2**20),
    status="refused",
)
by_notebook(
    "a cell of a million characters",
    "files",
    lambda field: room.with_code(field.perfect, "#" * 1_000_000),
    status="refused",
)


@handed_in("twenty thousand cells", "files", "refused")
def _many_cells(field, path):
    notebook = copy.deepcopy(field.perfect)
    notebook["cells"] = [field.perfect.cells[0]] * 20_000
    return notebook


for _name, _broken in {
    "not UTF-8": lambda good: good.replace(b"Policy", b"\xff\xfeol\xe9cy", 1)[:-1] + b"\xff}",
    "truncated": lambda good: good[:-2000],
    "empty": lambda good: b"",
    "JSON, but no notebook": lambda good: b'{"cells": {"metadata": []}}',
    "cells that are no cells": lambda good: b'{"cells": [1, {"cell_type": 7, "source": {"a": 1}}]}',
    "nested a hundred thousand deep": lambda good: b'{"cells": ' + b"[" * 100_000 + b"]" * 100_000,
    "a number of a million digits": lambda good: b'{"cells": [], "a": ' + b"9" * 1_000_000 + b"}",
}.items():
    by_notebook(_name, "files", lambda field, broken=_broken: broken(bytes_of(field.perfect)),
                status="unreadable file")  # fmt: skip


# Metadata, tags, cells


@handed_in("checks tagged to be skipped", "metadata", "graded")
def _skip(field, path):
    notebook = copy.deepcopy(field.blank)
    for cell in notebook.cells:
        cell.metadata["tags"] = ["skip-execution", "demo", "remove_cell"]
    return notebook


@handed_in("more points, other flags, unlocked checks", "metadata", "graded")
def _points(field, path):
    notebook = copy.deepcopy(field.blank)
    for cell in notebook.cells:
        if "nbgrader" in cell.metadata:
            cell.metadata.nbgrader.update(points=1000, locked=False, solution=True, grade=True)
            cell.metadata.nbgrader["checksum"] = "0"
    notebook.metadata["rlcourse_grading"] = {"fingerprint": "x", "row": {}, "seal": "x"}
    return notebook


@handed_in("checks rewritten to give points", "metadata", "graded")
def _rewritten(field, path):
    checks = {f"check_{name}": f"{room.POINTS[name]}" for name in room.NAMES}
    return room.with_answers(field.blank, **checks)


@handed_in("outputs that show full marks", "metadata", "graded")
def _outputs(field, path):
    notebook = copy.deepcopy(field.blank)
    for cell in notebook.cells:
        if cell.cell_type == "code":
            data = {"text/plain": "4.0", "text/html": SCRIPT, "image/svg+xml": SCRIPT}
            cell.outputs = [new_output("execute_result", data=data, execution_count=1)]
    return notebook


@handed_in("every check and answer twice", "metadata", "graded", deserved=TOTAL)
def _duplicated(field, path):
    notebook = copy.deepcopy(field.perfect)
    notebook.cells = [copy.deepcopy(c) for c in notebook.cells for _ in range(2)]
    return notebook


@handed_in("all cells in reverse", "metadata", deserved=TOTAL)
def _reversed(field, path):
    notebook = copy.deepcopy(field.perfect)
    notebook.cells.reverse()
    return notebook


@handed_in("metadata and ids lost on the way", "metadata", "graded", deserved=TOTAL)
def _stripped(field, path):
    notebook = copy.deepcopy(field.perfect)
    for number, cell in enumerate(notebook.cells):
        cell.metadata, cell.id = {}, f"x{number}"
    return notebook


@handed_in("metadata of strange types", "metadata", "graded", deserved=TOTAL)
def _strange(field, path):
    notebook = json.loads(bytes_of(field.perfect))
    for cell in notebook["cells"]:
        if not cell["metadata"].get("nbgrader"):
            cell["metadata"] = {"nbgrader": [1], "tags": {"a": 1}, "jupyter": None}
    notebook["metadata"] = {"kernelspec": {"name": "bash"}, "language_info": {"name": "sh"}}
    return notebook


@handed_in("half characters and terminal commands", "metadata", "graded", deserved=TOTAL)
def _surrogates(field, path):
    text = json.dumps(room.with_markdown(field.perfect, "HALF \x1b[2J\x1b]0;owned\x07"))
    return text.replace("HALF", "\\ud83d \\udfff").encode()


# Honest ones, whose answer in words is elsewhere: no points without a person, and no silent 0

for _name in (name for name in list(MOVES)[::5] if "breaks" not in name):

    @handed_in(f"an answer {_name}", "written", "graded", TOTAL, waits=True)
    def _moved(field, path, move=MOVES[_name]):
        solved = {name: room.solution(name) for name in room.NAMES}
        return move(room.with_answers(field.blank, **solved))


# What staff would see


@handed_in("scripts in an answer and in added text", "html", "graded")
def _html(field, path):
    notebook = room.with_answers(field.blank, applause=f"{SCRIPT}\n\n[x](javascript:alert(1))")
    return room.with_markdown(notebook, f"# {SCRIPT}\n<iframe src=//evil></iframe>\n<svg/onload=x>")
