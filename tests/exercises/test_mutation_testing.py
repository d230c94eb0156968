"""Random changes to right answers: what passes is right, and what is named is named truly."""

import ast
import sys
from dataclasses import replace

import pytest
import torch

from rlcourse import exercises
from rlcourse.checks.asking.calling import call
from rlcourse.checks.asking.case import Case
from rlcourse.checks.exercise import Mistake
from rlcourse.checks.proving.mutants import Mutant, compiled, mutants
from rlcourse.checks.proving.mutation_testing import Court, bounded_memory, report, try_mutants


def halved(x, mask=None):
    """A docstring that no mutant keeps."""
    total = 0.0
    while total < x:
        total = total + 1.0
    return [value / 2 for value in range(int(total)) if value is not None]


def test_mutants_differ_from_the_source_and_from_each_other():
    found = list(mutants(halved, 30))
    assert len(found) == 30 == len({mutant.diff for mutant in found})
    assert all(mutant.diff.startswith("-") and "\n+" in mutant.diff for mutant in found)
    assert [m.diff for m in mutants(halved, 30)] == [m.diff for m in found]


def test_a_mutant_that_never_ends_is_stopped():
    tree = ast.parse("def forever(x):\n    while True:\n        x = x + 1\n    return x").body[0]
    outcome = call(compiled(tree, halved), Case("", {"x": torch.zeros(1)}))
    assert outcome.error.type == "EndlessLoop"
    every = [call(mutant.function, Case("", {"x": 3.0})) for mutant in mutants(halved, 40)]
    assert any(o.error and o.error.type == "EndlessLoop" for o in every)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["masked_mean", "pass_at_k", "dpo_loss"])
def test_mutants_are_rejected_or_right_and_no_name_is_false(name):
    tally = try_mutants(exercises.get(name), 12)
    assert tally.mutants == 12 == tally.counts["rejected"] + tally.counts["equivalent"]
    assert tally.is_clean, tally.findings


def test_a_name_that_holds_on_one_drawing_only_is_found_out():
    exercise = exercises.get("masked_mean")
    reference, court = exercise.reference, Court(exercise)
    tried = {case.arguments["x"].data_ptr() for case in court.tried[0].cases}
    assert tried

    def sometimes(x, mask, dim=None):
        return reference(x, mask, dim) * 3

    def here(x, mask, dim=None):
        known = any(x.shape == c.arguments["x"].shape and bool((x == c.arguments["x"]).all())
                    for c in court.tried[0].cases)  # fmt: skip
        return reference(x, mask, dim) * (3 if known else 5)

    guilty = Mistake("three times the mean", sometimes, "…")
    court = Court(replace(exercise, mistakes=(guilty,)))
    assert court.verdict(Mutant(sometimes, "-\n+")).keys() == {"rejected", "named"}
    assert "false name" in court.verdict(Mutant(here, "-\n+"))


def test_an_exercise_that_lacks_a_case_is_shown_with_the_mutant_that_slips_through(capsys):
    exercise = exercises.get("masked_mean")

    def one_case(draw):
        yield replace(next(iter(exercise.cases(draw))), atol=1.0 if draw.seed < 100 else None)

    blind = replace(exercise, cases=one_case, mistakes=())
    tally = try_mutants(blind, 10)
    kinds = ("equivalent", "rejected", "passed")
    assert sum(tally.counts[kind] for kind in kinds) == tally.mutants == 10
    report([blind], 3)
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].split()[0] == "mutants" and lines[1].split()[:2] == ["masked_mean", "3"]


@pytest.mark.skipif(sys.platform != "linux", reason="memory is bounded on Linux only")
def test_a_mutant_that_asks_for_all_memory_gets_none():
    with pytest.raises(MemoryError), bounded_memory():
        "x" * (64 << 30)
    assert len("x" * (1 << 20)) == 1 << 20
