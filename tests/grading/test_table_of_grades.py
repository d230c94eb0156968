"""The table of `rlcourse grade`: what it says a person has to do, and when it stops saying so."""

import pytest

from rlcourse.grading.report import Report, Row


def row(student: str, waiting=(), review: str = "", **more) -> Row:
    found = Row(student, more.pop("status", "graded"), 3.0, 15.0, **more)
    return found.with_waiting(dict(waiting), review)


def test_a_written_answer_waits_until_it_has_points():
    waits, done = row("ada", [("applause", True)], before=True), row("bob", before=True)
    lines = Report("02_policy_gradient", (waits, done)).described().splitlines()
    assert lines[0].split("  ")[-2:] == ["by program", "status"]
    assert lines[1].endswith("graded   [graded before, a written answer waits]")
    assert lines[2].endswith("graded   [graded before]")
    assert waits.needs_person and not done.needs_person


def test_who_handed_in_nothing_is_said():
    found = Report("02", (row("ada"),), absent=("bob", "cyd"))
    assert found.described().splitlines()[-1] == "nothing from 2: bob, cyd"
    assert found.as_json()["absent"] == ["bob", "cyd"]
    assert "nothing from" not in str(Report("02", (row("ada"),)))


@pytest.mark.parametrize(
    ("seconds", "said"),
    [(1, ""), (600, " by 0.2 h"), (26 * 3600, " by 26.0 h")],
)
def test_who_is_late_is_said_with_the_penalty(seconds, said):
    late = row("ada", before=True, seconds_late=seconds, penalty=2.5)
    assert (
        Report("02", (late,))
        .described()
        .splitlines()[1]
        .endswith(f"[graded before, late{said}, penalty 2.5]")
    )


def test_what_is_odd_is_said():
    failed = row(
        "leo", [("check_f", False), ("q", False)], "wrong notebook", status="wrong notebook"
    )
    assert (
        Report("02", (failed,)).described().splitlines()[1].endswith("[to review: wrong notebook]")
    )
    older = row("mia", [("check_f", False), ("q", True)])
    said = Report("02", (older,)).described().splitlines()[1]
    note = "a written answer waits, to review: points by hand are older than the answer: f"
    assert said.endswith(f"[{note}]") and "look at" not in said
