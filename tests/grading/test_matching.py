"""Which row of a platform's table is whose: by ids that hold for all assignments, and only once."""

from test_platforms import CANVAS, WORKSHEET, book_of, rows, table

from rlcourse.grading.books.people import Student
from rlcourse.grading.platforms.tables import canvas_table, moodle_table


def test_a_row_that_may_be_of_two_people_or_a_person_of_two_rows_is_left_out_and_named(tmp_path):
    """Canvas and Moodle do not tell A_x from a_x; and a user name may be somebody's number."""
    text = CANVAS.replace("4322,S2,lukasz", "4321,S2,a_x")
    filled = canvas_table(book_of(Student("4321"), Student("a_x")), table(tmp_path, text))
    assert rows(filled)["Doe, Jane"][5] == rows(filled)["Müller Łukasz"][5] == ""
    said = "\n".join(filled.notes)
    assert "left out: row 5 of the table matches two students, 4321 and a_x; if they are" in said
    assert "`nbgrader db student remove ID`" in said
    both = (
        "4321 matches two rows of the table, 4 (Doe, Jane) and 5 (Müller Łukasz); correct the one"
    )
    assert f"left out: {both}" in said
    text = CANVAS.replace("lukasz", "A_X")
    filled = canvas_table(book_of(Student("a_x"), Student("A_x"), Student("4321")),
                          table(tmp_path, text))  # fmt: skip
    assert rows(filled)["Müller Łukasz"][5] == "" and rows(filled)["Doe, Jane"][5] == "5"
    sheet = WORKSHEET.replace("Full name", "Username").replace("New Nobody", "l@example.org")
    book = book_of(Student("l@example.org"), Student("jane", email="jane@example.org"))
    filled = moodle_table(book, table(tmp_path, sheet))
    found = rows(filled)
    assert found["Participant 4321"][4] == "5"
    assert found["Participant 4322"][4] == found["Participant 4399"][4] == ""
    said = "l@example.org matches two rows of the table, 3 (Participant 4322) and 5 (Participant"
    assert any(note.startswith(f"left out: {said}") for note in filled.notes)


def test_who_is_called_otherwise_here_is_found_by_the_platform_s_number(tmp_path):
    """On The Littlest JupyterHub, lukasz hands in as jupyter-lukasz."""
    grades = book_of(Student("jupyter-lukasz", platform_id="4322"), Student("4321"))
    filled = canvas_table(grades, table(tmp_path, CANVAS))
    assert rows(filled)["Müller Łukasz"][5] == rows(filled)["Doe, Jane"][5] == "5"
    assert not any("jupyter-lukasz" in note for note in filled.notes)
    assert {row[1] for row in canvas_table(grades).rows} >= {"4321", "4322"}
    grades = book_of(Student("jupyter-lukasz", platform_id="l@example.org"), Student("4321"))
    found = rows(moodle_table(grades, table(tmp_path, WORKSHEET)))
    assert found["Participant 4322"][4] == "5"
    assert found["Participant 4321"][4] == "", "a participant's number is of one assignment"
    two = book_of(Student("lukasz"), Student("jupyter-lukasz", platform_id="4322"))
    filled = canvas_table(two, table(tmp_path, CANVAS))
    assert rows(filled)["Müller Łukasz"][5] == ""
    assert any("left out" in note and "jupyter-lukasz" in note for note in filled.notes)
