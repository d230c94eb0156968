"""Many submissions are taken apart at a time, and a strange one ends no batch."""

import ast
import gc
import json
import sys
from concurrent.futures import ThreadPoolExecutor

import classroom as room
import pytest

from rlcourse.grading import grade
from rlcourse.grading.handing_in.submission import parse, rebuild
from rlcourse.grading.judging import marking


@pytest.fixture
def restless():
    """Threads that take turns in the middle of everything, collections included."""
    interval, threshold = sys.getswitchinterval(), gc.get_threshold()
    sys.setswitchinterval(1e-6)
    gc.set_threshold(5, 2, 2)
    switch = [None for _ in range(20)].copy
    gc.callbacks.append(turn := lambda *_: [switch() for _ in range(20)])
    yield
    gc.callbacks.remove(turn)
    gc.set_threshold(*threshold)
    sys.setswitchinterval(interval)


def test_notebooks_can_be_rebuilt_in_many_threads_at_once(template, restless, monkeypatch):
    release = room.released(template)
    data = json.dumps(room.solved(template)).encode()
    failures, parse_tree = [], ast.parse

    def noting(*args, **kwargs):
        try:
            return parse_tree(*args, **kwargs)
        except SystemError as error:
            failures.append(error)
            raise

    monkeypatch.setattr(ast, "parse", noting)
    with ThreadPoolExecutor(8) as pool:
        rebuilt = list(pool.map(lambda _: rebuild(release, parse(data)), range(60)))
    assert failures == []
    wanted = room.solution("reinforce_loss")
    assert all(room.cell_of(notebook, "reinforce_loss").source == wanted for notebook in rebuilt)


@pytest.mark.slow
def test_a_fault_of_ours_on_one_submission_is_a_status_and_ends_no_batch(course, monkeypatch):
    for student in ("ada", "bob", "cyd"):
        room.submit(course, student, room.solved(course, ["score_function"]))
    room.submit(course, "bob", room.with_code(room.solved(course), "stumble = 1"))
    room.submit(course, "cyd", room.with_code(room.solved(course), "fall = 1"))

    def stumbling(release, found):
        if any("stumble" in cell.source for cell in found):
            raise ZeroDivisionError
        return rebuild(release, found)

    def falling(notebook, transcript, marks, incidents):
        if any("fall" in cell.source for cell in notebook.cells if cell.id.startswith("added")):
            raise ZeroDivisionError
        return annotate(notebook, transcript, marks, incidents)

    annotate = marking.annotate
    monkeypatch.setattr(marking, "rebuild", stumbling)
    monkeypatch.setattr(marking, "annotate", falling)
    rows = {row.student: row for row in grade("02", course=course).rows}
    assert {s: (r.status, r.score) for s, r in rows.items()} == {
        "ada": ("graded", 2.0), "bob": ("unreadable file", 0.0), "cyd": ("unreadable file", 0.0)
    }  # fmt: skip
    assert all("ZeroDivisionError" in str(rows[s].incidents) for s in ("bob", "cyd"))
