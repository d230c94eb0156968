"""Grades as Canvas and Moodle take them: nobody's row is broken, mixed up or silently missing."""

import csv
import io
import zipfile
from pathlib import Path

import pytest
from nbgrader.api import Gradebook
from typer.testing import CliRunner

from rlcourse.cli import app
from rlcourse.errors import UserError
from rlcourse.grading.gradebook import put_alembic_on_path
from rlcourse.grading.grades import read_grades
from rlcourse.grading.platforms import (
    Table,
    canvas_table,
    moodle_table,
    plain_table,
    write_moodle_feedback,
)

LESSON, OTHER = "02_policy_gradient", "03_baselines"
CANVAS = """\
Student,ID,SIS User ID,SIS Login ID,Section,Policy gradient (555),Quiz (7),Current Score
    Points Possible,,,,,9,10,(read only)
"Doe, Jane",4321,S1,jdoe@example.org,"A, B",,3,30
Müller Łukasz,4322,S2,lukasz,A,,4,40
"Nobody, New",4399,S9,new,A,2,5,50
"Student, Test",1,,0ab,A,,,
"""
WORKSHEET = """\
Identifier,Full name,Email address,Status,Grade,Maximum Grade,Modified,Feedback comments
Participant 4321,"Doe, Jane",jane@example.org,Submitted,,9.00,-,
Participant 4322,Łukasz Müller,l@example.org,Submitted,,9.00,-,
Participant 4399,New Nobody,n@example.org,No submission,,9.00,-,
"""


@pytest.fixture(scope="module")
def course(tmp_path_factory):
    """Two lessons; 4321 has points by hand and was late, 4322 waits, 4323 handed in nothing."""
    root = tmp_path_factory.mktemp("course")
    put_alembic_on_path()
    with Gradebook(f"sqlite:///{root}/gradebook.db") as book:
        for lesson in (LESSON, OTHER):
            book.add_assignment(lesson, duedate="2026-10-01 12:00:00 UTC")
            book.add_notebook(lesson, lesson)
            book.add_grade_cell("check_loss", lesson, lesson, max_score=6, cell_type="code")
            book.add_grade_cell("why", lesson, lesson, max_score=3, cell_type="markdown")
        book.add_student("4321", first_name="Jane", last_name="Doe, the second", email="jane@x.org")
        book.add_student("4322", first_name="Łukasz", last_name="Müller")
        book.add_student("4323")
        for student, lesson, auto, manual, when in (
            ("4321", LESSON, 4.5, 2.0, "2026-10-02 12:00:00 UTC"),
            ("4322", LESSON, 6.0, None, "2026-10-01 11:00:00 UTC"),
            ("4322", OTHER, 3.0, 1.0, "2026-10-01 11:00:00 UTC"),
        ):
            book.add_submission(lesson, student, timestamp=when)
            grade = book.find_grade("check_loss", lesson, lesson, student)
            grade.auto_score, grade.needs_manual_grade = auto, False
            grade = book.find_grade("why", lesson, lesson, student)
            grade.manual_score, grade.needs_manual_grade = manual, manual is None
            book.db.commit()
        late = book.find_submission_notebook(LESSON, LESSON, "4321")
        late.late_submission_penalty = 1.5
        book.db.commit()
    return root


def table(tmp_path: Path, text: str, encoding: str = "utf-8") -> Table:
    path = tmp_path / "exported.csv"
    path.write_bytes(text.encode(encoding))
    return Table.read(path)


def rows(written: Table) -> dict[str, list[str]]:
    """What a program reads back, by the first column."""
    return {row[0]: row for row in csv.reader(io.StringIO(written.text()), strict=True)}


def test_points_by_hand_and_late_penalties_count_and_the_missing_are_missing(course):
    found = read_grades(course)
    late, waits, absent = (found.of(student, LESSON) for student in ("4321", "4322", "4323"))
    assert (late.earned, late.penalty, late.points, late.late) == (6.5, 1.5, 5.0, True)
    assert (waits.points, waits.waiting, waits.late, waits.possible) == (6.0, True, False, 9.0)
    assert absent.missing and found.of("4321", OTHER).missing
    assert dict((name, earned) for name, earned, _ in late.parts) == {"loss": 4.5, "why": 2.0}
    assert found.notes()[:2] == [
        f"{LESSON}: nothing handed in by 4323",
        f"{LESSON}: points by hand still to come for 4322",
    ]


def test_the_plain_table_survives_commas_and_letters_of_any_language(course):
    written = plain_table(read_grades(course, ["02"]))
    lines = list(csv.reader(io.StringIO(written.text()), strict=True))
    assert {len(line) for line in lines} == {len(lines[0])}
    jane, lukasz, absent = lines[1:]
    assert jane[1] == "Doe, the second" and jane[6:10] == ["yes", "1.5", "5", "9"]
    assert lukasz[1:3] == ["Müller", "Łukasz"]
    assert absent[8] == ""  # never a 0 that nobody has given


def test_canvas_s_own_gradebook_is_filled_in_and_nothing_else_changes(course, tmp_path):
    before = table(tmp_path, CANVAS)
    filled = canvas_table(read_grades(course, ["02"]), table(tmp_path, CANVAS))
    assert filled.header == before.header
    for old, new in zip(before.rows, filled.rows, strict=True):
        assert old[:5] + old[6:] == new[:5] + new[6:]
    found = rows(filled)
    assert found["Doe, Jane"][5] == "5" and found["Müller Łukasz"][5] == "6"
    assert found["Nobody, New"][5] == "2"  # stays as it was
    said = "\n".join(filled.notes)
    assert "not in the gradebook: Nobody, New" in said and "not in the table: 4323" in said
    assert "Test" not in said and "Points" not in said


def test_a_lesson_without_a_column_gets_one_and_another_maximum_is_said(course, tmp_path):
    text = CANVAS.replace(",9,10,", ",100,10,")
    filled = canvas_table(read_grades(course), table(tmp_path, text))
    assert filled.header[-1] == OTHER and rows(filled)["Müller Łukasz"][-1] == "4"
    assert rows(filled)["    Points Possible"][5::3] == ["100", "9"]
    said = "\n".join(filled.notes)
    assert "100 points are possible there, and 9 here" in said and "so one is added" in said


def test_a_column_that_is_unclear_is_asked_for(course, tmp_path):
    text = CANVAS.replace("Quiz (7)", "Policy-Gradient (8)")
    grades = read_grades(course, ["02"])
    with pytest.raises(UserError, match=r"Policy gradient \(555\).*--column 02=NAME"):
        canvas_table(grades, table(tmp_path, text))
    filled = canvas_table(grades, table(tmp_path, text), {LESSON: "Policy-Gradient (8)"})
    assert rows(filled)["Doe, Jane"][5:7] == ["", "5"]


@pytest.mark.parametrize("delimiter", [",", ";"])
@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig"])
def test_a_file_goes_back_as_it_came(course, tmp_path, delimiter, encoding):
    out = io.StringIO(newline="")
    csv.writer(out, delimiter=delimiter).writerows(csv.reader(io.StringIO(CANVAS)))
    read = table(tmp_path, out.getvalue(), encoding)
    canvas_table(read_grades(course, ["02"]), read).write(tmp_path / "back.csv")
    content = (tmp_path / "back.csv").read_bytes()
    assert content.startswith(b"\xef\xbb\xbf") == (encoding == "utf-8-sig")
    again = Table.read(tmp_path / "back.csv")
    assert again.header == read.header and again.rows == read.rows


def test_without_an_export_canvas_gets_the_columns_that_it_wants(course):
    made = canvas_table(read_grades(course, ["02"]))
    assert made.header[:5] == ["Student", "ID", "SIS User ID", "SIS Login ID", "Section"]
    found = rows(made)
    assert found["Doe, the second, Jane"][1:] == ["4321", "", "", "", "5"]
    assert found["    Points Possible"][-1] == "9"


def test_moodle_s_worksheet_gets_grades_and_a_sentence(course, tmp_path):
    sheet = moodle_table(read_grades(course, ["02"]), table(tmp_path, WORKSHEET))
    found = rows(sheet)
    assert found["Participant 4321"][4] == "5"
    said = found["Participant 4321"][-1]
    assert said == "5 of 9 points; late, 1.5 taken off; loss 4.5/6; why 2/3"
    assert found["Participant 4322"][4] == "6" and found["Participant 4399"][4] == ""
    assert any("New Nobody" in note for note in sheet.notes)
    with pytest.raises(UserError, match="name one lesson"):
        moodle_table(read_grades(course), table(tmp_path, WORKSHEET))


def test_a_table_of_something_else_is_refused(course, tmp_path):
    grades = read_grades(course, ["02"])
    with pytest.raises(UserError, match="no gradebook of Canvas's"):
        canvas_table(grades, table(tmp_path, "a,b\n1,2\n"))
    with pytest.raises(UserError, match="no grading worksheet"):
        moodle_table(grades, table(tmp_path, "a,b\n1,2\n"))
    with pytest.raises(UserError, match="two rows of the table are 4321"):
        canvas_table(grades, table(tmp_path, CANVAS.replace("4322", "4321")))
    with pytest.raises(UserError, match="cannot be read"):
        table(tmp_path, CANVAS, "utf-16")
    with pytest.raises(UserError, match="no gradebook yet"):
        read_grades(tmp_path)


def test_feedback_pages_lie_where_moodle_looks_for_the_person(course, tmp_path):
    for student in ("4321", "ada"):
        page = tmp_path / "feedback" / student / LESSON / f"{LESSON}.html"
        page.parent.mkdir(parents=True)
        page.write_text(student)
    students = [s for s in read_grades(course).students.values()]
    named = [type(students[0])("4321", "Doe_x/y", "Jane"), type(students[0])("ada")]
    out = tmp_path / "feedback.zip"
    assert write_moodle_feedback(out, tmp_path / "feedback", LESSON, named) == ["ada"]
    with zipfile.ZipFile(out) as archive:
        (name,) = archive.namelist()
        assert archive.read(name) == b"4321"
    # Moodle splits a folder's name at its underscores: name, participant, kind, plugin
    person, participant, kind, plugin = name.split("/")[0].split("_")
    assert (person, participant) == ("Jane Doe x y", "4321")
    assert (kind, plugin, name.count("/")) == ("assignfeedback", "file", 1)
    with pytest.raises(UserError, match="generate_feedback"):
        write_moodle_feedback(out, tmp_path / "none", LESSON, named)


def test_the_command_signs_what_the_gradebook_says_and_waits_for_points_by_hand(course, tmp_path):
    out = tmp_path / "jane.json"
    words = ["complete", "4321", "--out", str(out), "--course", str(course)]
    done = CliRunner().invoke(app, words)
    assert done.exit_code == 0, done.output
    key = course / "completion-key.pub"
    said = CliRunner().invoke(app, ["verify", str(out), "--key", str(key)]).output
    assert "Jane Doe, the second (4321): 1 of 2 lessons passed" in said and "5 of 9" in said
    waiting = CliRunner().invoke(app, ["complete", "4322", "--course", str(course)])
    assert "by hand are still to come" in str(waiting.exception)


def test_the_command_writes_the_table_and_says_who_is_missing(course, tmp_path):
    exported, out = tmp_path / "canvas.csv", tmp_path / "grades.csv"
    exported.write_text(CANVAS, encoding="utf-8")
    words = ["grades", "02", "--format", "canvas", "--into", str(exported), "--out", str(out)]
    done = CliRunner().invoke(app, [*words, "--course", str(course)])
    assert done.exit_code == 0, done.output
    assert rows(Table.read(out))["Doe, Jane"][5] == "5"
    assert "nothing handed in by 4323" in done.stderr
    same = CliRunner().invoke(app, [*words[:-1], str(exported), "--course", str(course)])
    assert isinstance(same.exception, UserError) and exported.read_text("utf-8") == CANVAS
