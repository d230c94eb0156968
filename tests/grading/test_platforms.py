"""Grades as Canvas and Moodle take them: nobody's row is broken, mixed up or silently missing."""

import csv
import io
import logging
import re
import shutil
from pathlib import Path

import pytest
from nbgrader.api import Gradebook
from nbgrader.converters import GenerateFeedback

from rlcourse.errors import UserError
from rlcourse.grading.books.gradebook import Course
from rlcourse.grading.books.grades import ClassGrades, LessonGrade, read_grades
from rlcourse.grading.books.people import Student
from rlcourse.grading.pages.showing import IsolatedFeedback
from rlcourse.grading.platforms.exporting import Filling, plain_table
from rlcourse.grading.table import Table

LESSON, OTHER = "02_policy_gradient", "03_baselines"
# As Canvas and Moodle export them, with the columns and rows that nobody asked for
CANVAS = """\
Student,ID,SIS User ID,SIS Login ID,Section,Policy gradient (555),Quiz (7),Current Score
,,,,,Manual Posting,,
    Points Possible,,,,,9,10,(read only)
"Doe, Jane",4321,S1,jdoe@example.org,"A, B",,3,30
Müller Łukasz,4322,S2,lukasz,A,,4,40
"Excused, Eve",4324,S3,eve,A,EX,4,40
"Nobody, New",4399,S9,new,A,2,5,50
"Student, Test",1,,0ab,A,,,
"""
WORKSHEET = """\
Identifier,Full name,Email address,Status,Grade,Maximum Grade,Grade can be changed,\
Last modified (submission),Last modified (grade),Feedback comments
Participant 4321,"Doe, Jane",jane@example.org,Submitted for grading,,9.00,Yes,\
"Friday, 2 October 2026, 2:00 PM",-,
Participant 4322,Łukasz Müller,l@example.org,Submitted for grading,,9.00,Yes,\
"Thursday, 1 October 2026, 1:00 PM",-,
Participant 4324,Eve Excused,e@example.org,Submitted for grading - Graded,8.00,9.00,No,\
"Thursday, 1 October 2026, 1:00 PM","Friday, 2 October 2026, 9:00 AM",by hand
Participant 4399,New Nobody,n@example.org,No submission,,9.00,Yes,-,-,
"""


GUIDE = Path(__file__).parents[2] / "course" / "late.md"


@pytest.fixture(scope="module")
def course(tmp_path_factory):
    """Two lessons; 4321 has points by hand and was late, 4322 waits in the first, 4323 handed in
    nothing, 4324 has all points."""
    root = tmp_path_factory.mktemp("course")
    with Gradebook(f"sqlite:///{root}/gradebook.db") as book:
        for lesson in (LESSON, OTHER):
            book.add_assignment(lesson, duedate="2026-10-01 12:00:00 UTC")
            book.add_notebook(lesson, lesson)
            book.add_grade_cell("check_loss", lesson, lesson, max_score=6, cell_type="code")
            book.add_grade_cell("why", lesson, lesson, max_score=3, cell_type="markdown")
        book.add_student("4321", first_name="Jane", last_name="Doe, the second", email="jane@x.org")
        book.add_student("4322", first_name="Łukasz", last_name="Müller")
        book.add_student("4323")
        book.add_student("4324")
        for student, lesson, auto, manual, when in (
            ("4321", LESSON, 4.5, 2.0, "2026-10-02 12:00:00 UTC"),
            ("4322", LESSON, 6.0, None, "2026-10-01 11:00:00 UTC"),
            ("4322", OTHER, 3.0, 1.0, "2026-10-01 11:00:00 UTC"),
            ("4324", LESSON, 6.0, 3.0, "2026-10-01 11:00:00 UTC"),
        ):
            book.add_submission(lesson, student, timestamp=when)
            grade = book.find_grade("check_loss", lesson, lesson, student)
            grade.auto_score, grade.needs_manual_grade = auto, False
            grade = book.find_grade("why", lesson, lesson, student)
            grade.manual_score, grade.needs_manual_grade = manual, manual is None
            book.db.commit()
    (rule,) = re.findall(
        r"```python\n(from math import ceil\n.*?)```", GUIDE.read_text(), re.DOTALL
    )
    (root / "nbgrader_config.py").write_text(f"c = get_config()\n{rule}")
    return root


def table(tmp_path: Path, text: str, encoding: str = "utf-8") -> Table:
    path = tmp_path / "exported.csv"
    path.write_bytes(text.encode(encoding))
    return Table.read(path)


def filled(grades: ClassGrades, exported: Table, **columns: str) -> Table:
    """The table with points in it; `columns` are what an instructor says."""
    Filling(exported, grades).fill(columns)
    return exported


def rows(written: Table) -> dict[str, list[str]]:
    """What a program reads back, by the first column."""
    return {row[0]: row for row in csv.reader(io.StringIO(written.text()), strict=True)}


def test_points_by_hand_and_late_penalties_count_and_the_missing_are_missing(course):
    found = read_grades(course)
    late, waits, absent = (found.of(student, LESSON) for student in ("4321", "4322", "4323"))
    assert (late.earned, late.penalty, late.points, late.late) == (
        6.5,
        pytest.approx(0.65),
        pytest.approx(5.85),
        True,
    )
    assert (waits.points, waits.waiting, waits.late, waits.possible) == (6.0, True, False, 9.0)
    assert absent.missing and found.of("4321", OTHER).missing
    assert dict((name, earned) for name, earned, _ in late.parts) == {"loss": 4.5, "why": 2.0}
    assert found.notes()[:2] == [
        f"{LESSON}: nothing graded for 4323",
        f"{LESSON}: answers still to be graded by hand: 4322",
    ]


def test_pages_of_feedback_show_the_penalty_of_now(course, tmp_path, monkeypatch, caplog):
    """Points by hand, an extension or another due date have changed it since grading."""
    opened = Course.open(shutil.copytree(course, tmp_path / "course"))
    opened.directory.assignment_id = LESSON
    read_grades(tmp_path / "course")
    with Gradebook(opened.directory.db_url) as book:
        book.update_or_create_assignment(LESSON, duedate="2026-09-30 12:00:00 UTC")
    seen = []

    def pages(self):
        with Gradebook(opened.directory.db_url) as book:
            found = book.find_submission(LESSON, "4321").notebooks[0]
            seen.append(found.late_submission_penalty)

    monkeypatch.setattr(GenerateFeedback, "start", pages)
    feedback = IsolatedFeedback(coursedir=opened.directory, config=opened.config)
    feedback.log.setLevel(logging.WARNING)
    feedback.start()
    assert seen.pop() == pytest.approx(1.3)
    opened.directory.student_id = "4321"  # and the written answer of 4322 waits
    feedback.start()
    assert caplog.text.count("given or confirmed for 4322.") == 1


def test_the_plain_table_survives_commas_and_letters_of_any_language(course):
    written = plain_table(read_grades(course, ["02"]))
    lines = list(csv.reader(io.StringIO(written.text()), strict=True))
    jane, lukasz, absent, _ = lines[1:]
    assert jane[1] == "Doe, the second" and jane[6:10] == ["yes", "0.65", "5.85", "9"]
    assert lukasz[2] == "Łukasz" and lukasz[8] == "" and lukasz[10] == "yes"  # still to come
    assert absent[8] == ""  # never a 0 that nobody has given


def test_canvas_s_own_gradebook_is_filled_in_and_nothing_else_changes(course, tmp_path):
    before = table(tmp_path, CANVAS)
    done = filled(read_grades(course, ["02"]), table(tmp_path, CANVAS))
    assert done.header == before.header
    for old, new in zip(before.rows, done.rows, strict=True):
        assert old[:5] + old[6:] == new[:5] + new[6:]
    found = rows(done)
    assert found["Doe, Jane"][5] == "5.85" and found["Müller Łukasz"][5] == ""  # who waits
    assert found["Nobody, New"][5] == "2" and found["Excused, Eve"][5] == "EX"  # stay as they were
    said = "\n".join(done.notes)
    assert f"{LESSON}: Canvas does not change these grades, so they stay as they are: 4324" in said
    assert "not in the gradebook: Nobody, New" in said and "not in the table: 4323" in said
    assert "Test" not in said and "Points" not in said


def test_the_column_is_found_by_the_lesson_s_number_and_title_or_asked_for(course, tmp_path):
    for name in ("02_policy_gradient", "Lesson 02: The policy gradient", "The policy gradient",
                 "The Policy Gradient (lesson 2)", "Lesson 2", "PolicyGradient"):  # fmt: skip
        text = CANVAS.replace("Policy gradient (555)", f"{name} (990002)")
        done = filled(read_grades(course, ["02"]), table(tmp_path, text))
        assert rows(done)["Doe, Jane"][5:7] == ["5.85", "3"], name
    for name in ("Homework 2", "Lesson 03: The policy gradient", "Lesson 22", "Gradient"):
        text = CANVAS.replace("Policy gradient (555)", f"{name} (990002)")
        with pytest.raises(UserError, match="no column is clearly that of 02_policy_gradient"):
            filled(read_grades(course, ["02"]), table(tmp_path, text))


def test_moodle_s_worksheet_gets_grades_and_a_sentence(course, tmp_path):
    text = WORKSHEET.replace("Email address", "ID number").replace("jane@example.org", "4321")
    text = text.replace("l@example.org", "4322").replace("e@example.org", "4324")
    sheet = filled(read_grades(course, ["02"]), table(tmp_path, text))
    found = rows(sheet)
    assert found["Participant 4321"][4] == "5.85"
    said = found["Participant 4321"][-1]
    assert said == "5.85 of 9 points; late, 0.65 taken off; loss 4.5/6; why 2/3"
    assert found["Participant 4322"][4] == found["Participant 4322"][-1] == ""  # who waits
    assert found["Participant 4324"][4] == "8.00" and found["Participant 4324"][-1] == "by hand"
    assert any("does not change these" in note and note.endswith("4324") for note in sheet.notes)
    assert found["Participant 4399"][4] == ""
    assert any("New Nobody" in note for note in sheet.notes)
    with pytest.raises(UserError, match="cannot be both"):
        filled(read_grades(course), table(tmp_path, WORKSHEET))


def book_of(*students: Student, points: float = 5.0) -> ClassGrades:
    """Grades of students who all earned the same."""
    earned = {(s.id, LESSON): LessonGrade(LESSON, 9.0, points) for s in students}
    return ClassGrades({s.id: s for s in students}, (LESSON,), earned)


def test_no_export_holds_a_formula_or_a_command_to_a_terminal(tmp_path):
    hostile = "=cmd|' /C calc'!A0", "+1+1", "@SUM(1)", "-2+3", "\x1b[2J", "＝1"
    students = [Student(text, text, f"{text}2", f"{text}@x") for text in hostile]
    grades, exported = book_of(*students), CANVAS.replace("Müller Łukasz", '"=1+1"')
    for written in (plain_table(grades), filled(grades, table(tmp_path, exported))):
        for row in csv.reader(io.StringIO(written.text()), strict=True):
            for field in row:
                assert not field.startswith(("=", "+", "@", "-2", "＝")), field
                assert "\x1b" not in field
        assert all(note.isprintable() for note in written.notes)
