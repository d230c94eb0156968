"""Which row of a platform's table is whose: by ids that hold for all assignments, and only once."""

from test_platforms import CANVAS, WORKSHEET, book_of, filled, rows, table

from rlcourse.grading.books.people import Student


def test_a_row_that_may_be_of_two_people_or_a_person_of_two_rows_is_left_out_and_named(tmp_path):
    """Canvas and Moodle do not tell A_x from a_x; and a user name may be somebody's number."""
    text = CANVAS.replace("4322,S2,lukasz", "4321,S2,a_x")
    done = filled(book_of(Student("4321"), Student("a_x")), table(tmp_path, text))
    assert rows(done)["Doe, Jane"][5] == rows(done)["Müller Łukasz"][5] == ""
    said = "\n".join(done.notes)
    assert "left out: row 5 of the table matches two students, 4321 and a_x; if they are" in said
    assert "`nbgrader db student remove ID`" in said
    both = (
        "4321 matches two rows of the table, 4 (Doe, Jane) and 5 (Müller Łukasz); correct the one"
    )
    assert f"left out: {both}" in said


def test_who_is_called_otherwise_here_is_found_by_the_platform_s_number(tmp_path):
    """On The Littlest JupyterHub, lukasz hands in as jupyter-lukasz."""
    grades = book_of(Student("jupyter-lukasz", platform_id="4322"), Student("4321"))
    done = filled(grades, table(tmp_path, CANVAS))
    assert rows(done)["Müller Łukasz"][5] == rows(done)["Doe, Jane"][5] == "5"
    assert not any("jupyter-lukasz" in note for note in done.notes)
    grades = book_of(Student("jupyter-lukasz", platform_id="l@example.org"), Student("4321"))
    found = rows(filled(grades, table(tmp_path, WORKSHEET)))
    assert found["Participant 4322"][4] == "5"
    assert found["Participant 4321"][4] == "", "a participant's number is of one assignment"
    two = book_of(Student("lukasz"), Student("jupyter-lukasz", platform_id="4322"))
    done = filled(two, table(tmp_path, CANVAS))
    assert rows(done)["Müller Łukasz"][5] == ""
    assert any("left out" in note and "jupyter-lukasz" in note for note in done.notes)
