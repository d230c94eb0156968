"""What is said of an answer for programs: answers that earn the same nothing are told apart."""

import json
from dataclasses import asdict

import pytest

from rlcourse.grading.judging import finding
from rlcourse.grading.judging.mark import Mark


@pytest.fixture
def rows(mixed):
    report = mixed[1].as_json()
    return {row["student"]: row for row in json.loads(json.dumps(report))["submissions"]}


STATES = {
    "ada": "right",
    "bob": "named",
    "cyd": "named",
    "dan": "unnamed",
    "eve": "unnamed",
    "fay": "unnamed",
    "gus": "raises",
    "hal": "syntax error",
    "ida": "timed out",
    "jon": "imported",
    "kim": "blank",
}


@pytest.mark.slow
def test_every_kind_of_answer_has_a_state_of_its_own(rows):
    assert {s: rows[s]["exercises"]["reinforce_loss"]["state"] for s in STATES} == STATES
    assert rows["leo"]["status"] == "unreadable file" and rows["leo"]["exercises"] == {}
    states = {e["state"] for row in rows.values() for e in row["exercises"].values()}
    assert states <= {*finding.STATES}


@pytest.mark.slow
def test_answers_that_are_wrong_alike_show_the_same_case_whatever_the_code(rows):
    cases = {s: rows[s]["exercises"]["reinforce_loss"]["case"] for s in ("dan", "eve", "fay")}
    assert cases["dan"] == cases["eve"] != cases["fay"]


@pytest.mark.slow
def test_open_questions_are_in_it(rows):
    possible = rows["ada"]["questions"]["applause"]["possible"]
    assert possible > 0
    waits = {"answered": True, "points": None, "possible": possible}
    assert rows["ada"]["questions"] == {"applause": waits}
    assert rows["kim"]["questions"]["applause"] == {**waits, "answered": False, "points": 0.0}


def test_a_mark_is_the_same_after_its_way_through_a_message():
    mark = Mark("f", 1.0, 2.0, False, None, "why", ("g",), "named", ("a",), case=(("b", "c"),))
    assert Mark.from_json(json.loads(json.dumps(asdict(mark)))) == mark
    assert mark.as_row()["state"] == "named" and "measured" not in mark.as_row()
