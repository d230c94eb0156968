"""The notebook that remains after a submission is read can be shown at once."""

import classroom as room
import pytest
from nbconvert.filters.highlight import Highlight2HTML
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook

from rlcourse.grading import grade
from rlcourse.grading.books.gradebook import read_receipt
from rlcourse.grading.handing_in.submission import rebuild
from rlcourse.grading.judging import marking
from rlcourse.grading.judging.marking import (
    LONGEST_LINE,
    LONGEST_SHOWN,
    MOST_SHOWN,
    MOST_WRITTEN,
    shorten,
)


@pytest.mark.parametrize("piece", ["a.", "@", "%", "a?", "{", "(", "in ", "a?\n", "f'{"])
def test_code_is_short_enough_to_be_colored(piece):
    """Dots alone, 20,000 characters on one line, took nbconvert half a minute."""
    notebook = new_notebook(cells=[new_code_cell((piece * 200_000)[:200_000])])
    shorten(notebook)
    source = notebook.cells[0].source
    assert len(source) <= LONGEST_SHOWN + 10_000
    assert max(map(len, source.split("\n"))) <= LONGEST_LINE + 1
    assert "shortened" in source and "200000" in source
    Highlight2HTML(pygments_lexer="ipython3")(source)


def test_many_cells_share_one_limit_and_what_people_write_stays(template):
    notebook = new_notebook(cells=[new_code_cell("x = 1\n" * 3000) for _ in range(50)])
    shorten(notebook)
    assert sum(len(cell.source) for cell in notebook.cells) < MOST_SHOWN + 50 * 100
    solved = room.solved(template)
    before = [cell.source for cell in solved.cells]
    shorten(solved)
    assert [cell.source for cell in solved.cells] == before


def test_of_markdown_only_what_students_wrote_is_bounded():
    theirs = {"rlcourse": {"added": True}}
    cells = [new_markdown_cell("<" * 20_000, metadata=theirs) for _ in range(50)]
    notebook = new_notebook(cells=[new_markdown_cell("x" * 2 * MOST_WRITTEN), *cells])
    shorten(notebook)
    lesson, *written = [len(cell.source) for cell in notebook.cells]
    assert lesson == 2 * MOST_WRITTEN and written[:20] == [20_000] * 20
    assert sum(written) < MOST_WRITTEN + 50 * 100


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
