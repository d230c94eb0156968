"""Random changes to right answers: what passes is right, and what is named is named truly."""

from dataclasses import replace

import pytest
import torch

from rlcourse import exercises
from rlcourse.checks.asking.calling import call
from rlcourse.checks.asking.case import Case
from rlcourse.checks.exercise import Mistake
from rlcourse.checks.proving.trying import Court, mutants, report
from rlcourse.checks.telling.changes import Change, places
from rlcourse.checks.telling.rewriting import Source


def halved(x, mask=None):
    """A docstring that no mutant keeps."""
    total = 0.0
    while total < x:
        total = total + 1.0
    return [value / 2 for value in range(int(total)) if value is not None]


def test_changes_differ_from_the_source_and_a_loop_without_an_end_is_stopped():
    source, case = Source(halved), Case("", {"x": 3.0})
    functions = [source.changed(*found) for found in source.changes(case)]
    outcomes = [call(function, case) for function in functions if function]
    assert len(outcomes) > 30
    assert any(o.error and o.error.type == "EndlessLoop" for o in outcomes)
    assert call(source.plain(), case).value == halved(3.0)


def test_a_change_is_made_in_one_place_and_undone():
    source = Source(halved)
    parent, field, node = next(p for p in places(source.trees[0]) if getattr(p[2], "value", 0) == 2)
    tripled = source.changed(0, Change(0, parent, field, node, "X + 1"))
    assert tripled(x=2.0) == [0.0, 1 / 3] and source.plain()(x=2.0) == [0.0, 0.5]


def test_a_name_that_holds_on_one_drawing_only_is_found_out():
    exercise = exercises.get("masked_mean")
    reference, court = exercise.reference, Court(exercise, 0)

    def sometimes(x, mask, dim=None):
        return reference(x, mask, dim) * 3

    def here(x, mask, dim=None):
        known = any(torch.equal(x, c.arguments["x"]) for e in court.tried for c in e.cases)
        return reference(x, mask, dim) * (3 if known else 5)

    guilty = Mistake("three times the mean", sometimes, "…")
    court = Court(replace(exercise, mistakes=(guilty,)), 0)
    assert court.verdict(sometimes) == "named"
    assert court.verdict(here) == "false name"


def test_mutants_are_tried_and_one_that_slips_through_is_shown(capsys):
    exercise = exercises.get("masked_mean")

    def one_case(draw):
        yield replace(
            next(iter(exercise.cases(draw))), atol=1.0 if draw.seed % 7919 < 101 else None
        )

    blind = replace(exercise, cases=one_case, mistakes=())
    assert not report([blind], mutants, 20, [0])
    said = capsys.readouterr().out
    assert "passed (seed 0): " in said and ", line " in said and " → " in said


@pytest.mark.parametrize("name", ["masked_mean", "pass_at_k"])
def test_mutants_are_rejected_or_right_and_no_name_is_false(name):
    assert report([exercises.get(name)], mutants, 10, [0])
