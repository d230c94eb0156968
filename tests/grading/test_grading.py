"""``rlcourse grade`` on a class: resumed, repeated, complete; and nbgrader's commands after it."""

import json
import os
import shutil
import subprocess
from pathlib import Path

import classroom as room
import pytest

from rlcourse.errors import UserError
from rlcourse.grading.books.grades import read_grades
from rlcourse.grading.engine import Options, grade

pytestmark = pytest.mark.slow


SIGN_TURNED = """\
def reinforce_loss(logprobs, advantages, mask):
    return (advantages.detach() * logprobs.masked_fill(~mask.bool(), 0).sum(dim=1)).mean()
"""


def command(path: str, course: Path, line: str, succeeds: bool = True):
    """A command that is on `path`, run in the course directory as an instructor would."""
    environment = os.environ | {"PATH": path, "RLCOURSE_HOME": str(course.parent / "home")}
    environment["OMP_NUM_THREADS"] = "1"
    words = ["bash", "-euc", line]
    done = subprocess.run(words, cwd=course, env=environment, capture_output=True, text=True)
    assert (done.returncode == 0) == succeeds, done.stderr[-3000:]
    return done


@pytest.fixture(scope="module")
def graded(template, tmp_path_factory, warm):
    """A course in which four students were graded once, by the command."""
    root = tmp_path_factory.mktemp("graded") / "repository"
    shutil.copytree(template.parent, root)
    course = root / "course"
    room.submit(course, "ada", room.solved(course))
    wrong = room.with_answers(room.solved(course), reinforce_loss=SIGN_TURNED)
    room.submit(course, "bob", wrong)
    room.submit(course, "cyd", room.released(course))
    leaning = "def exact_policy_gradient(logits, rewards):\n    assert len(scores) == 3\n"
    leaning += room.solution("exact_policy_gradient").split("\n", 1)[1]
    room.submit(
        course, "liv", room.with_answers(room.solved(course), exact_policy_gradient=leaning)
    )
    room.submit(course, "dan", b"\xff")
    done = command(warm, course, "rlcourse grade 02 --json")
    return course, json.loads(done.stdout)


def rows_of(report: dict) -> dict[str, dict]:
    return {row["student"]: row for row in report["submissions"]}


def test_the_report_has_a_status_and_points_for_everyone(graded):
    rows = rows_of(graded[1])
    assert {s: (r["status"], r["score"], r["needs_person"]) for s, r in rows.items()} == {
        "ada": ("graded", 15.0, True),
        "bob": ("graded", pytest.approx(11.5, abs=0.5), True),
        "cyd": ("graded", 0.0, False),
        "dan": ("unreadable file", 0.0, True),
        "liv": ("graded", 15.0, True),  # uses a name that a demonstration of the lesson defines
    }
    mistake = rows["bob"]["exercises"]["reinforce_loss"]["mistake"]
    assert mistake == "the objective, not the loss: the sign is missing"


def test_the_gradebook_waits_for_a_person_where_one_is_needed(graded):
    course, _ = graded
    waiting = room.query(course, f"{room.GRADES} where grade.needs_manual_grade")
    by_student = {student: sum(row[0] == student for row in waiting) for student in
                  ("ada", "bob", "cyd", "dan", "liv")}  # fmt: skip
    assert by_student == {"ada": 1, "bob": 1, "cyd": 0, "dan": 6, "liv": 1}
    assert room.grades(course, "cyd")["applause"] == 0
    assert room.grades(course, "ada")["applause"] is None


def test_a_second_run_grades_nothing_and_says_the_same(graded):
    course, before = graded
    files = {p: p.stat().st_mtime_ns for p in (course / "autograded").rglob("*.ipynb")}
    again = grade("02", course=course)
    assert all(row.before for row in again.rows)
    assert {r.student: (r.status, r.score) for r in again.rows} == {
        s: (r["status"], r["score"]) for s, r in rows_of(before).items()
    }
    assert files == {p: p.stat().st_mtime_ns for p in (course / "autograded").rglob("*.ipynb")}


def test_graded_again_by_force_the_points_are_the_same_and_manual_ones_stay(graded):
    course, _ = graded
    with_manual = "update grade set manual_score = 1.5 where id in (select grade.id from "
    room.query(course, with_manual + room.GRADES.split("from", 1)[1]
               + " where student.id = 'ada' and base_cell.name = 'applause')")  # fmt: skip
    again = grade("02", student="ada", course=course, options=Options(force=True))
    assert [(r.student, r.score, r.before) for r in again.rows] == [("ada", 15.0, False)]
    assert again.rows[0].waits  # points of which the gradebook says that they are to be looked at
    where = "where student.id = 'ada' and base_cell.name = 'applause'"
    assert room.query(course, f"{room.GRADES} {where}") == [("ada", "applause", None, 1.5, 1)]


def test_an_answer_waits_no_longer_once_it_has_points_by_hand(graded):
    course, _ = graded
    before = {row.student: row for row in grade("02", course=course).rows}
    assert before["bob"].waits and not before["bob"].review and before["bob"].before
    assert before["dan"].review == "unreadable file" and not before["dan"].waits
    notes = read_grades(course).notes()
    assert f"{room.LESSON}: answers still to be graded by hand: ada, bob, liv" in notes
    assert f"{room.LESSON}: to review in Formgrader: dan" in notes
    kept = room.query(course, "select needs_manual_grade, manual_score, id from grade")
    change = "update grade set needs_manual_grade = ?, manual_score = ? where id = ?"
    waiting = room.query(course, room.GRADES.replace("select", "select grade.id,", 1))
    for found in waiting:
        if found[1] in ("bob", "dan"):
            room.query(course, change, 0, 1.0, found[0])
    again = {row.student: row for row in grade("02", course=course).rows}
    assert not again["bob"].needs_person and not again["dan"].needs_person
    assert again["liv"].waits
    for values in kept:
        room.query(course, change, *values)


def test_points_by_hand_are_to_be_looked_at_once_the_answer_is_another(graded):
    course, _ = graded
    at = room.query(course, f"{room.GRADES.replace('select', 'select grade.id,', 1)} where "
                    "student.id = 'bob' and base_cell.name = 'applause'")[0][0]  # fmt: skip
    settle = "update grade set manual_score = 1.5, needs_manual_grade = 0 where id = ?"
    room.query(course, settle, at)
    now = "select manual_score, needs_manual_grade from grade where id = ?"
    grade("02", student="bob", course=course, options=Options(force=True))
    assert room.query(course, now, at) == [(1.5, 0)]
    wrong = room.with_answers(room.solved(course, answer="Another."), reinforce_loss=SIGN_TURNED)
    room.submit(course, "bob", wrong)
    grade("02", student="bob", course=course)
    assert room.query(course, now, at) == [(1.5, 1)]


def test_feedback_names_the_mistake_and_shows_no_hidden_test(graded, warm):
    course, _ = graded
    command(warm, course, f"nbgrader generate_feedback {room.LESSON} --force")
    page = (course / "feedback" / "bob" / room.LESSON / f"{room.LESSON}.html").read_text()
    assert "the objective, not the loss: the sign is missing" in page
    assert "hidden=True" not in page and "HIDDEN" not in page
    unread = (course / "feedback" / "dan" / room.LESSON / f"{room.LESSON}.html").read_text()
    assert "the file is not a notebook: it is not text" in unread


def test_where_the_grader_cannot_take_its_place_nbgraders_own_refuses(course, warm):
    config = course / "nbgrader_config.py"
    config.write_text(config.read_text().replace("import install", "import nothing as install"))
    room.submit(course, "ada", room.solved(course))
    command(warm, course, f"nbgrader generate_assignment {room.LESSON}")
    done = command(warm, course, f"nbgrader autograde {room.LESSON}", succeeds=False)
    assert "switched off in this course" in done.stderr
    assert not list((course / "autograded").rglob("*.ipynb"))


def test_what_the_instructor_can_mend_is_one_sentence(course):
    with pytest.raises(UserError, match=r"no lesson '99'.*02_policy_gradient"):
        grade("99", course=course)
    with pytest.raises(UserError, match="name the right one with --submitted"):
        grade("02", course=course)
    room.submit(course, "ada", room.released(course))
    with pytest.raises(UserError, match=r"no submission by bob: expected .*/submitted/bob/02_"):
        grade("02", student="bob", course=course)
    with pytest.raises(UserError, match=r"--strict refuses: .*seccomp \(switched off\)"):
        grade("02", course=course, options=Options(strict=True, layers_off=("seccomp",)))
    assert not list((course / "autograded").glob("[!.]*"))  # a lock at most
