"""Names of a class, from the tables that Canvas and Moodle export."""

from types import SimpleNamespace

import pytest
from test_platforms import CANVAS, WORKSHEET, table
from typer.testing import CliRunner

from rlcourse.cli import app
from rlcourse.errors import UserError
from rlcourse.grading.books.gradebook import Course
from rlcourse.grading.books.people import students_by_name, students_of
from rlcourse.grading.platforms.matching import student_with
from rlcourse.grading.platforms.roster import enter_roster

FIELDS = ("last_name", "first_name", "email", "lms_user_id")


class Book:
    """What a roster uses of nbgrader's gradebook."""

    def __init__(self, *known: str):
        self.entered = {student: {} for student in known}

    @property
    def students(self):
        return [
            SimpleNamespace(id=s, **{name: of.get(name) for name in FIELDS})
            for s, of in self.entered.items()
        ]

    def update_or_create_student(self, student, **names):
        self.entered[student] = names


def names(book: Book) -> dict[str, tuple[str, str]]:
    return {s: (n["first_name"], n["last_name"]) for s, n in book.entered.items() if n}


def test_moodle_s_students_are_called_by_what_holds_for_the_next_assignment_too(tmp_path):
    text = WORKSHEET.replace("Email address", "Username").replace("l@example.org", "")
    book, sheet = Book(), table(tmp_path, text)
    enter_roster(book, tmp_path, sheet)
    assert set(book.entered) == {"jane@example.org", "e@example.org", "n@example.org"}
    assert any("Łukasz Müller: the platform's file has no ID" in note for note in sheet.notes)
    with pytest.raises(UserError, match="ID number, Username and Email address"):
        enter_roster(Book(), tmp_path, table(tmp_path, WORKSHEET.replace("Email address", "Phone")))
    with pytest.raises(UserError, match="Moodle numbers people anew"):
        enter_roster(Book(), tmp_path, table(tmp_path, WORKSHEET), "Identifier")
    with pytest.raises(UserError, match="no column 'Login'"):
        enter_roster(Book(), tmp_path, table(tmp_path, CANVAS), "Login")


@pytest.mark.parametrize("known, called", [((), "jupyter-eve"), (("jupyter-eve",), "jupyter-eve"),
                                           (("eve",), "eve")])  # fmt: skip
def test_the_littlest_hub_puts_a_prefix_before_the_login(tmp_path, known, called):
    text = CANVAS.replace("4399,S9,new", "4399,S9,")  # whose login the platform does not know
    assert ",eve," in text
    text = text.replace(",eve,", ",Eve,") if called not in known else text
    book = Book(*known)
    enter_roster(book, tmp_path, table(tmp_path, text), "SIS Login ID", "jupyter-")
    assert set(book.entered) == {"jupyter-jdoe@example.org", "jupyter-lukasz", called, "4399"}
    assert book.entered[called]["lms_user_id"] == "4324"


def test_who_may_be_two_is_left_out_and_listed(tmp_path):
    exported = table(tmp_path, CANVAS)
    book = Book("lukasz", "S2")
    enter_roster(book, tmp_path, exported)
    assert not {"lukasz", "S2", "4322"} & {*names(book)}
    assert any("two students fit, S2 and lukasz" in note for note in exported.notes)
    exported = table(tmp_path, CANVAS.replace("4322,S2", "4321,S2"))
    book = Book()
    enter_roster(book, tmp_path, exported)
    assert names(book)["4321"] == ("Jane", "Doe")
    assert any("two rows fit one student, 4321" in note for note in exported.notes)


def test_any_id_in_the_table_finds_a_student_here_and_on_other_platforms(tmp_path):
    """Gradescope's student ID may be any of Canvas's; who knows which, before its first export?"""
    (tmp_path / "canvas.csv").write_text(CANVAS, encoding="utf-8")
    words = ["roster", str(tmp_path / "canvas.csv"), "--course", str(tmp_path)]
    words += ["--id", "SIS Login ID", "--prefix", "x-"]
    assert CliRunner().invoke(app, words).output == (
        "in the gradebook by name: 4 students, such as x-jdoe@example.org (Jane Doe)\n"
    )
    joined = CANVAS + '"Come, Late",5000,S9999,lata,A,,,\n'
    (tmp_path / "canvas.csv").write_text(joined, encoding="utf-8")
    assert CliRunner().invoke(app, words).output == (
        "in the gradebook by name: 5 students, such as x-jdoe@example.org (Jane Doe)\n"
    )
    students = students_of(Course.open(tmp_path).directory)
    known = students_by_name(students)
    for called in ("4322", "S2", "lukasz", "x-lukasz"):
        assert student_with([called], known) == "x-lukasz"
    (tmp_path / "moodle.csv").write_text(WORKSHEET, encoding="utf-8")
    done = CliRunner().invoke(app, ["roster", str(tmp_path / "moodle.csv"), *words[2:]])
    assert "this table has no column 'SIS Login ID'" in str(done.exception)
    (tmp_path / "roster.json").write_text("[]")
    done = CliRunner().invoke(app, words)
    assert isinstance(done.exception, UserError) and "delete it" in str(done.exception)
    (tmp_path / "roster.json").unlink()
    assert CliRunner().invoke(app, words).exit_code == 0
    assert {*students_by_name(students_of(Course.open(tmp_path).directory))} == {*known}
