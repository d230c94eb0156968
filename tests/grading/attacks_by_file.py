"""Submissions that attack as files: their names, their bytes, their cells and metadata."""

import copy
import json
import os

import classroom as room
from attacks import ATTACKS, TOTAL, Attack, Field
from nbformat.v4 import new_output

SCRIPT = "<script>alert('x')</script><img src=x onerror=alert(1)>"


def handed_in(name: str, kind: str, status=None, deserved=0.0):
    """An attack by how the file is handed in; the function returns a notebook, bytes, or None."""

    def register(make):
        def write(field: Field, student: str) -> None:
            made = make(field, room.submit(field.course, student, ""))
            if made is not None:
                room.submit(field.course, student, made)

        ATTACKS.append(Attack(name, kind, write, deserved, status))
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


@handed_in("a linked directory", "files", "refused")
def _linked_directory(field, path):
    path.unlink()
    path.parent.rmdir()
    path.parent.symlink_to(room.submit(field.course, "a-neighbor", field.perfect).parent)


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


@handed_in("a directory in place of the notebook", "files", "refused")
def _directory(field, path):
    path.unlink()
    path.mkdir()


@handed_in("a device that never ends", "files", "refused")
def _device(field, path):
    path.unlink()
    path.symlink_to("/dev/zero")


@handed_in("an enormous notebook", "files", "refused")
def _enormous(field, path):
    return bytes_of(field.perfect) + b" " * (65 * 2**20)


@handed_in("a cell of a million characters", "files", "refused")
def _long_cell(field, path):
    return room.with_code(field.perfect, "#" * 1_000_000)


@handed_in("twenty thousand cells", "files", "refused")
def _many_cells(field, path):
    notebook = copy.deepcopy(field.perfect)
    notebook["cells"] = [field.perfect.cells[0]] * 20_000
    return notebook


@handed_in("not UTF-8", "files", "unreadable file")
def _latin(field, path):
    return bytes_of(field.perfect).replace(b"Policy", b"\xff\xfeol\xe9cy", 1)[:-1] + b"\xff}"


@handed_in("truncated", "files", "unreadable file")
def _truncated(field, path):
    return bytes_of(field.perfect)[:-2000]


@handed_in("empty", "files", "unreadable file")
def _empty(field, path):
    return b""


@handed_in("JSON, but no notebook", "files", "unreadable file")
def _no_notebook(field, path):
    return b'{"cells": {"metadata": []}}'


@handed_in("cells that are no cells", "files", "unreadable file")
def _no_cells(field, path):
    return b'{"cells": [1, null, {"cell_type": 7, "source": {"a": 1}}], "nbformat": 4}'


@handed_in("nested a hundred thousand deep", "files", "unreadable file")
def _deep(field, path):
    return b'{"cells": ' + b"[" * 100_000 + b"]" * 100_000 + b"}"


@handed_in("a number of a million digits", "files", "unreadable file")
def _digits(field, path):
    return b'{"nbformat": ' + b"9" * 1_000_000 + b', "cells": []}'


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


@handed_in("checks deleted", "metadata", "graded")
def _deleted(field, path):
    notebook = copy.deepcopy(field.blank)
    notebook.cells = [c for c in notebook.cells if not str(c.get("id")).startswith("check_")]
    return notebook


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


@handed_in("grade ids exchanged", "metadata")
def _exchanged(field, path):
    notebook = copy.deepcopy(field.blank)
    first, second = (room.cell_of(notebook, name) for name in room.NAMES[:2])
    first.metadata.nbgrader.grade_id, second.metadata.nbgrader.grade_id = room.NAMES[1::-1]
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


# What staff would see


@handed_in("scripts in an answer and in added text", "html", "graded")
def _html(field, path):
    notebook = room.with_answers(field.blank, applause=f"{SCRIPT}\n\n[x](javascript:alert(1))")
    return room.with_markdown(notebook, f"# {SCRIPT}\n<iframe src=//evil></iframe>\n<svg/onload=x>")


@handed_in("scripts in outputs and in errors", "html")
def _html_outputs(field, path):
    source = (
        "from IPython.display import HTML, display as show\n"
        f"print({SCRIPT!r})\nshow(HTML({SCRIPT!r}))\nraise ValueError({SCRIPT!r})"
    )
    body = f"raise RuntimeError({SCRIPT!r})"
    notebook = room.with_answers(
        field.blank, score_function=f"def score_function(logits, action):\n    {body}"
    )
    return room.with_code(notebook, source)
