"""Late is late, by what counts in the end; and who was given more time is not."""

import shutil

import pytest
from nbgrader.api import Gradebook
from typer.testing import CliRunner

from rlcourse.cli import app
from rlcourse.errors import UserError
from rlcourse.grading.books.extensions import FILE
from rlcourse.grading.books.grades import read_grades

LESSON = "02_policy_gradient"
DUE = "2026-10-01 12:00:00 UTC"


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """Lateness costs all points; ada was two days late, and waits for points by hand."""
    tmp_path = tmp_path_factory.mktemp("made")
    (tmp_path / "nbgrader_config.py").write_text(
        "c = get_config()\nc.LateSubmissionPlugin.penalty_method = 'zero'\n"
    )
    source = tmp_path / "source" / LESSON / f"{LESSON}.ipynb"
    source.parent.mkdir(parents=True)
    source.write_text("{}")
    with Gradebook(f"sqlite:///{tmp_path}/gradebook.db") as book:
        book.add_assignment(LESSON, duedate=DUE)
        book.add_notebook(LESSON, LESSON)
        book.add_grade_cell("check_loss", LESSON, LESSON, max_score=6, cell_type="code")
        book.add_grade_cell("why", LESSON, LESSON, max_score=3, cell_type="markdown")
        book.add_student("ada")
        hand_in(book, "ada", "2026-10-03 12:00:00 UTC", by_hand=None)
    return tmp_path


@pytest.fixture
def course(made, tmp_path):
    return shutil.copytree(made, tmp_path / "course")


def hand_in(book: Gradebook, student: str, when: str, by_hand: float | None = 2.0) -> None:
    book.update_or_create_submission(LESSON, student, timestamp=when)
    grade = book.find_grade("check_loss", LESSON, LESSON, student)
    grade.auto_score, grade.needs_manual_grade = 4.0, False
    grade = book.find_grade("why", LESSON, LESSON, student)
    grade.manual_score, grade.needs_manual_grade = by_hand, by_hand is None
    book.db.commit()


def extend(course, until: str, student: str = "ada", lesson: str = "02"):
    words = ["extend", student, lesson, "--until", until, "--course", str(course)]
    return CliRunner().invoke(app, words)


def test_an_extension_counts_from_now_on_and_is_nbgrader_s_own(course):
    done = extend(course, "2026-10-05 23:59 Europe/Berlin")
    assert done.output.startswith(
        "ada has until Monday, 2026-10-05 23:59 Europe/Berlin (2026-10-05 21:59 UTC) "
        f"for {LESSON}\n"
    )
    found = read_grades(course).of("ada", LESSON)
    assert (found.points, found.penalty, found.late) == (4.0, 0.0, False)
    with Gradebook(f"sqlite:///{course}/gradebook.db") as book:
        submission = book.find_submission(LESSON, "ada")
        assert f"{submission.duedate}" == "2026-10-05 21:59:00"
        assert submission.late_submission_penalty in (None, 0)


def test_a_student_who_does_not_exist_is_refused(course):
    done = extend(course, "2026-10-05 12:00", student="adda")
    said = "there is no student adda in the gradebook or in submitted/"
    assert said in str(done.exception) and isinstance(done.exception, UserError)
    assert not (course / FILE).exists()


def test_an_extension_is_remembered_until_something_is_handed_in(course):
    (course / "submitted" / "bob").mkdir(parents=True)
    assert extend(course, "2026-10-05 12:00", student="bob").exit_code == 0
    assert "bob" not in read_grades(course).students  # nobody hands in by being given time
    with Gradebook(f"sqlite:///{course}/gradebook.db") as book:
        book.add_student("bob")
        hand_in(book, "bob", "2026-10-04 12:00:00 UTC")
    assert read_grades(course).of("bob", LESSON).points == 6.0


@pytest.mark.parametrize("read", [True, False])  # whether the gradebook has heard of it
def test_an_extension_is_taken_back_everywhere(course, read):
    extend(course, "2026-10-05 12:00")
    if read:
        assert not read_grades(course).of("ada", LESSON).late
    words = ["extend", "ada", "02", "--remove", "--course", str(course)]
    done = CliRunner().invoke(app, words)
    assert done.exit_code == 0 and done.output.startswith("taken back: ada has no more time")
    found = read_grades(course).of("ada", LESSON)
    assert found.late and found.points == 0


@pytest.mark.parametrize(
    ("until", "student", "said"),
    [
        ("soon", "ada", "write a time as"),
        ("2026-10-05 12:00 Europe/Atlantis", "ada", "write a time as"),
        ("2026-09-01 12:00", "ada", "is not after the due date, 2026-10-01 12:00:00 UTC"),
        ("2026-10-05 12:00", "../ada", "is no student"),
    ],
)
def test_what_cannot_be_given_is_refused_with_a_sentence(course, until, student, said):
    done = extend(course, until, student)
    assert isinstance(done.exception, UserError) and said in str(done.exception)
    assert not (course / FILE).exists()
