"""The proof finds each comparison of a reference whose equality no case shows."""

import re
from dataclasses import replace

import pytest
import torch

from rlcourse import exercises
from rlcourse.checks.proving.boundaries import changed, unshown
from rlcourse.courses import current


def without(name, pattern):
    """The exercise without the cases whose label has the pattern."""
    exercise = exercises.get(name)

    def cases(draw):
        return (case for case in exercise.cases(draw) if not re.search(pattern, case.label))

    return replace(exercise, cases=cases)


@pytest.mark.parametrize(
    ("name", "labels", "code", "change"),
    [
        ("backtracking_line_search", "just max_kl", "kl_fn() <= max_kl", "`<` for `<=`"),
        ("fit_entropy_reward", "hardly differ", "x.min() == x.max()", "a tolerance of 0.001"),
    ],
)
def test_a_comparison_without_its_case_is_said_with_code_and_change(name, labels, code, change):
    (said,) = (s for s in unshown(without(name, labels), (0,), ()) if f"in `{code}`" in s)
    assert change in said and "no case tells" in said and "`boundaries`" in said


def picky(x, low=1.0, high=3.0):
    """Counts what lies between."""
    inside = (x >= low) & (x < high)
    return inside.sum() if 0 <= low < high else _none(x) != 1


def _none(x):
    return 0 if len(x) == 0 else 1


def test_chains_are_seen_also_in_helpers_and_each_comparison_is_changed_alone():
    found = {(c.code, c.words): c for c in changed(picky)}
    assert {code for code, _ in found} == {
        *("x >= low", "x < high", "0 <= low", "low < high", "_none(x) != 1", "len(x) == 0")
    }
    x = torch.tensor([1.0, 2.0, 3.0])
    assert found["x < high", "`<=` for `<`"].function(x=x) == 3
    assert found["x >= low", "`>` for `>=`"].function(x=x) == 1
    with pytest.raises(TypeError, match="exactly"):  # whole numbers have no tolerance
        found["len(x) == 0", "a tolerance of 0.001 for `==`"].function(x=x, low=-1.0)
    first = picky.__code__.co_firstlineno
    assert found["x < high", "`<=` for `<`"].place == f"picky, line {first + 2}"


def test_an_excuse_holds_where_it_is_needed_and_is_said_where_it_is_not():
    bare = without("backtracking_line_search", "just max_kl")
    reason = "Rounding."
    excused = replace(bare, boundaries=(("kl_fn() <= max_kl", reason),))
    assert list(unshown(excused, (0,), ())) == []
    for code in ("kl_fn() <= max_kl", "a < b", "*"):
        needless = replace(exercises.get(bare.name), boundaries=((code, reason),))
        (said,) = unshown(needless, (0,), ())
        assert f"`{code}`" in said and "is not a comparison of the function" in said


def test_comparisons_of_another_exercise_are_left_to_it():
    exercise = exercises.get("decoupled_loss")
    assert list(unshown(exercise, (0,), current().exercises)) == []
    assert any("weights > cap" in said for said in unshown(exercise, (0,), ()))
