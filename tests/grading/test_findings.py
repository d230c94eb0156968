"""What is said of an answer for programs: answers that earn the same nothing are told apart."""

import json
from dataclasses import asdict

import pytest
import torch

from rlcourse.checks.asking.calling import Failure, Outcome
from rlcourse.checks.asking.case import Case
from rlcourse.exercises import get as get_exercise
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
def test_the_same_outputs_have_the_same_fingerprint_whatever_the_code(rows):
    students = "bob", "cyd", "dan", "eve", "fay"
    printed = {s: rows[s]["exercises"]["reinforce_loss"]["outputs"] for s in students}
    assert printed["bob"] == printed["cyd"] and printed["dan"] == printed["eve"]
    assert len(set(printed.values())) == 3


@pytest.mark.slow
def test_open_questions_are_in_it(rows):
    possible = rows["ada"]["questions"]["applause"]["possible"]
    assert possible > 0
    waits = {"answered": True, "points": None, "possible": possible}
    assert rows["ada"]["questions"] == {"applause": waits}
    assert rows["kim"]["questions"]["applause"] == {**waits, "answered": False, "points": 0.0}


def test_a_fingerprint_overlooks_rounding_and_sees_numbers_types_and_gradients():
    exercise = get_exercise("reinforce_loss")
    case = Case("", {"logprobs": torch.zeros(2)}, differentiable=("logprobs",))

    def printed(value, gradient=None, **kwargs):
        outcome = Outcome(value, {"logprobs": gradient}, **kwargs)
        return finding.fingerprint(exercise, [case], [outcome])

    third = torch.tensor(1 / 3)
    assert printed(third) == printed(third + 1e-7)
    assert printed(torch.tensor(1e-17)) == printed(torch.tensor(-0.0))
    others = [
        *(third + 1e-3, third[None], third.double(), 1 / 3, None, torch.tensor(float("nan"))),
        *([third], [third, third], {"a": third}, "text", True),
    ]
    assert len({printed(other) for other in [third, *others]}) == 1 + len(others)
    assert printed(third, torch.ones(2)) != printed(third)
    failed = Failure("ValueError", "one message")
    assert printed(None, error=failed) == printed(None, error=Failure("ValueError", "another"))


def test_names_that_a_reader_adds_to_a_mark_are_those_of_its_row():
    mark = Mark("f", 1.0, 2.0, False, None, "why", ("g",), finding.Finding("named", ("a",)))
    assert Mark.from_json(json.loads(json.dumps(asdict(mark)))) == mark
    assert mark.as_row()["state"] == "named" and mark.as_row()["once"] == ["g"]
