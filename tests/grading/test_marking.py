"""Whatever a submission or an earlier run has left, reading it ends no batch."""

import classroom as room
import pytest

from rlcourse.grading.books.gradebook import read_receipt
from rlcourse.grading.engine import grade
from rlcourse.grading.handing_in.submission import rebuild
from rlcourse.grading.judging import marking


@pytest.mark.parametrize("text", ["", "[]", "[" * 100_000, '{"metadata": {"rlcourse_grading": 7}}'])
def test_whatever_plain_nbgrader_left_holds_no_receipt_and_ends_no_batch(tmp_path, text):
    (tmp_path / "a.ipynb").write_text(text)
    assert read_receipt(tmp_path / "a.ipynb", b"secret") is None


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
