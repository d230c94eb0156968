"""A lesson that changes after students handed it in: an instructor's whole way, in its order."""

from pathlib import Path

import classroom as room
import nbformat
import pytest
from nbgrader.api import Gradebook
from small_courses import write_course
from test_grading import command

from rlcourse.authoring import build
from rlcourse.grading import Options, grade

pytestmark = pytest.mark.weekly

OURS = room.REPOSITORY / "course" / "lessons" / room.LESSON / "lesson.md"


@pytest.fixture(scope="module")
def course(tmp_path_factory):
    """A released lesson of one's own; ada and bob handed it in, and have 1.5 points by hand."""
    root = tmp_path_factory.mktemp("amended")
    made = write_course(root / "course", {room.LESSON: OURS.read_text()})
    build(root=root, progress=False)
    command(made, "nbgrader", "generate_assignment", room.LESSON)
    for student in ("ada", "bob"):
        room.submit(made, student, room.solved(made, room.NAMES[:1]))
    grade("02", course=made)
    give_points(made)
    return made


def give_points(course: Path) -> None:
    """What Formgrader does when a person gives points for every answer that waits."""
    with Gradebook(f"sqlite:///{course}/gradebook.db") as book:
        for student in book.assignment_submissions(room.LESSON):
            for found in student.notebooks[0].grades:
                if found.needs_manual_grade:
                    found.manual_score, found.needs_manual_grade = 1.5, False
        book.db.commit()


def by_hand(course: Path) -> dict[tuple[str, str], tuple[float | None, bool]]:
    """{(student, question): (points by hand, whether a person should look)}."""
    found = room.query(course, f"{room.GRADES} where base_cell.name not like 'check_%'")
    return {(row[0], row[1]): (row[3], bool(row[4])) for row in found}


SETTLED, WAITING = (1.5, False), (1.5, True)


def test_1_a_regrade_reopens_only_answers_whose_text_changed(course):
    grade("02", course=course, options=Options(force=True))
    assert by_hand(course) == {("ada", "applause"): SETTLED, ("bob", "applause"): SETTLED}
    room.submit(course, "bob", room.solved(course, room.NAMES[:1], answer="Another answer."))
    command(course, "nbgrader", "autograde", room.LESSON, "--force")
    assert by_hand(course) == {("ada", "applause"): SETTLED, ("bob", "applause"): WAITING}
    grade("02", course=course, options=Options(force=True))
    assert by_hand(course)["bob", "applause"] == WAITING, "nobody has looked yet"


def test_2_an_answer_goes_on_in_the_cells_below_it(course):
    give_points(course)
    longer = room.solved(course, room.NAMES[:1])
    at = room.index_of(longer, "applause") + 1
    longer.cells.insert(at, nbformat.v4.new_markdown_cell("And a second thought."))
    room.submit(course, "ada", longer)
    grade("02", course=course)
    assert by_hand(course) == {("ada", "applause"): WAITING, ("bob", "applause"): SETTLED}


def test_4_changed_points_are_in_the_prose_and_the_gradebook(course):
    give_points(course)
    with (course / "course.toml").open("a") as settings:
        settings.write("\n[points]\napplause = 5\n")  # the parts of its rubric grow with it
    build(root=course.parent, progress=False)
    text = room.released(course)
    assert any("**Graded by hand, 5 points.**" in cell.source for cell in text.cells)
    assert "one question for 5 points" in text.cells[0].source + text.cells[1].source
    grade("02", course=course)  # without generate_assignment
    most = "select max_score from grade_cells join base_cell using (id) where name = 'applause'"
    assert room.query(course, most) == [(5.0,)]
    waiting = {("ada", "applause"): WAITING, ("bob", "applause"): WAITING}
    assert by_hand(course) == waiting, "1.5 points were given out of 2"
