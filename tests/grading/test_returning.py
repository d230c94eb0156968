"""Feedback through the exchange, in a class of which some handed in elsewhere; and for Moodle."""

import zipfile
from pathlib import Path

import pytest
from nbgrader.api import Gradebook
from nbgrader.apps import NbGraderAPI
from nbgrader.utils import notebook_hash
from test_platforms import WORKSHEET, table

from rlcourse.errors import UserError
from rlcourse.grading.books.gradebook import Course
from rlcourse.grading.books.grades import ClassGrades, LessonGrade
from rlcourse.grading.books.people import Student
from rlcourse.grading.platforms.exporting import Filling

LESSON = "02_policy_gradient"
SETTINGS = Path(__file__).parents[2] / "course" / "nbgrader_config.py"


@pytest.fixture
def api(tmp_path):
    """The course's settings; ada and cyd handed in through the exchange, bob by mail."""
    (tmp_path / "nbgrader_config.py").write_text(SETTINGS.read_text("utf-8"), "utf-8")
    config = Course.open(tmp_path).config
    config.CourseDirectory.root = str(tmp_path)
    config.Exchange.root = str(tmp_path / "exchange")
    (tmp_path / "exchange").mkdir()
    for student in ("ada", "bob", "cyd"):
        folder = tmp_path / "feedback" / student / LESSON
        folder.mkdir(parents=True)
        (folder / f"{LESSON}.html").write_text(f"to {student}")
        (folder / "timestamp.txt").write_text("2026-10-01 11:00:00 UTC")
        if student != "bob":
            (folder / "submission_secret.txt").write_text(f"secret of {student}")
    return NbGraderAPI(config=config)


def returned(root: Path) -> set[str]:
    return {page.read_text() for page in (root / "exchange/rlcourse/feedback").glob("*.html")}


def test_who_handed_in_elsewhere_is_named_and_everybody_else_gets_their_page(api, tmp_path):
    done = api.release_feedback(LESSON)
    assert done["success"], done
    assert returned(tmp_path) == {"to ada", "to cyd"}
    assert "send them their pages" in done["log"] and "yourself: bob" in done["log"]
    name = notebook_hash(secret="secret of cyd", notebook_id=LESSON)
    assert (tmp_path / f"exchange/rlcourse/feedback/{name}.html").read_text() == "to cyd"
    assert api.coursedir.student_id_exclude == "", "a server keeps it for the next lesson"


def test_whose_answers_wait_for_points_gets_the_page_later_or_by_name(api, tmp_path):
    source = tmp_path / "source" / LESSON / f"{LESSON}.ipynb"
    source.parent.mkdir(parents=True)
    source.write_text("{}")
    with Gradebook(f"sqlite:///{tmp_path}/gradebook.db") as book:
        book.add_assignment(LESSON)
        book.add_notebook(LESSON, LESSON)
        book.add_grade_cell("why", LESSON, LESSON, max_score=3, cell_type="markdown")
        for student in ("ada", "cyd"):
            book.add_student(student)
            book.add_submission(LESSON, student)
            grade = book.find_grade("why", LESSON, LESSON, student)
            grade.needs_manual_grade = student == "cyd"
            grade.manual_score = None if student == "cyd" else 3.0
        book.db.commit()
    done = api.release_feedback(LESSON)
    assert done["success"] and "released all the same): cyd" in done["log"], done
    assert returned(tmp_path) == {"to ada"}
    assert api.release_feedback(LESSON, "cyd")["success"]
    assert returned(tmp_path) == {"to ada", "to cyd"}


def test_feedback_pages_lie_where_moodle_looks_for_the_person(tmp_path):
    jane = Student("jane@example.org", "Doe_x/y", "Jane")
    eve = Student("jupyter-eve", platform_id="e@example.org")
    students = {s.id: s for s in (jane, Student("4322"), eve)}
    for student in students:
        page = tmp_path / "feedback" / student / LESSON / f"{LESSON}.html"
        page.parent.mkdir(parents=True)
        page.write_text(student)
    out, exported = tmp_path / "feedback.zip", WORKSHEET.replace(",No,", ",Yes,")

    def packed(sheet: str, pages: str = "feedback", waiting: str = "") -> int:
        earned = {(s, LESSON): LessonGrade(LESSON, 9.0, 5.0, asks=s == waiting) for s in students}
        grades = ClassGrades(students, (LESSON,), earned)
        Filling(table(tmp_path, sheet), grades).write_feedback(out, tmp_path / pages)
        return len(zipfile.ZipFile(out).namelist())

    assert packed(exported, waiting="jupyter-eve") == 1
    assert packed(WORKSHEET) == 1, "eve's grade on Moodle is fixed"
    assert packed(exported) == 2, "4322 is a participant's number, which is of one assignment"
    with zipfile.ZipFile(out) as archive:
        name, other = archive.namelist()
        assert other.split("_")[1] == "4324"
        assert archive.read(name) == b"jane@example.org"
    # Moodle splits a folder's name at its underscores: name, participant, kind, plugin
    person, participant, kind, plugin = name.split("/")[0].split("_")
    assert (person, participant) == ("Jane Doe x y", "4321")
    assert (kind, plugin, name.count("/")) == ("assignfeedback", "file", 1)
    with pytest.raises(UserError, match="generate_feedback"):
        packed(exported, "none")
