"""The proof finds each comparison of a reference whose equality no case shows."""

import re
from dataclasses import replace

import pytest
import torch

from rlcourse import exercises
from rlcourse.checks.asking.case import Case
from rlcourse.checks.proving.boundaries import Watched, unshown
from rlcourse.checks.proving.mutants import EndlessLoop
from rlcourse.courses import current
from rlcourse.courses.demands import lacking

NOBODY = "is not a comparison of the function"


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
        ("conjugate_gradient", "as long as", "squared < tolerance", "`<=` for `<`"),
        ("probe_mask", "times the gradient", "gradient != 0", "a tolerance of 0.001 for `!=`"),
        ("fit_entropy_reward", "hardly differ", "x.min() == x.max()", "a tolerance of 0.001"),
    ],
)
def test_a_comparison_without_its_case_is_said_with_code_and_change(name, labels, code, change):
    (said,) = (s for s in unshown(without(name, labels), (0,), ()) if f"in `{code}`" in s)
    assert change in said and "no case tells" in said and "# Boundaries" in said


def picky(x, low=1.0, high=3.0):
    """Counts what lies between, with every spelling of a comparison."""
    inside = torch.logical_and(torch.ge(x, low), x.lt(high))
    return inside.sum() if 0 <= low < high else _none(x) != 1


def _none(x):
    return 0 if len(x) == 0 else 1


def test_operators_chains_methods_and_functions_of_torch_are_seen_also_in_helpers():
    watched = Watched(picky)
    assert watched(x=torch.tensor([1.0, 2.0, 3.0])) == 2
    codes = {c.code: c.sign for c in watched.comparisons}
    assert codes == {
        "torch.ge(x, low)": ">=",
        "x.lt(high)": "<",
        "0 <= low": "<=",
        "low < high": "<",
        "_none(x) != 1": "!=",
        "len(x) == 0": "==",
    }
    assert {c.function for c in watched.comparisons} == {"picky", "_none"}
    for c in watched.comparisons:
        assert c.line in range(picky.__code__.co_firstlineno, _none.__code__.co_firstlineno + 2)
    number = next(i for i, c in enumerate(watched.comparisons) if c.code == "x.lt(high)")
    ((_, changed),) = watched.comparisons[number].changes()
    assert watched.with_change(number, changed)(x=torch.tensor([1.0, 2.0, 3.0])) == 3
    assert watched(x=torch.tensor([1.0, 2.0, 3.0])) == 2


def test_a_function_that_reads_variables_of_another_is_called_as_it_is():
    bound = 3
    watched = Watched(lambda x: x < bound)
    assert watched(x=2) and not watched.comparisons


def test_a_change_that_never_ends_is_stopped():
    watched = Watched(halved)
    ((_, changed),) = watched.comparisons[0].changes()
    assert watched(n=8) == 4
    with pytest.raises(EndlessLoop):
        watched.with_change(0, changed)(n=8)


def halved(n):
    rounds = 0
    while n > 0:
        n, rounds = n // 2, rounds + 1
    return rounds


def test_an_excuse_holds_where_it_is_needed_and_is_said_where_it_is_not():
    bare = without("backtracking_line_search", "just max_kl")
    reason = "Rounding."
    excused = replace(bare, boundaries=(("kl_fn() <= max_kl", reason),))
    assert list(unshown(excused, (0,), ())) == []
    for code in ("kl_fn() <= max_kl", "a < b", "*"):
        needless = replace(exercises.get(bare.name), boundaries=((code, reason),))
        (said,) = unshown(needless, (0,), ())
        assert f"`{code}`" in said and NOBODY in said


def test_comparisons_of_another_exercise_are_left_to_it():
    exercise = exercises.get("decoupled_loss")
    assert list(unshown(exercise, (0,), current().exercises)) == []
    assert any("weights > cap" in said for said in unshown(exercise, (0,), ()))


@pytest.mark.parametrize("name", ["changed_share", "backtracking_line_search"])
def test_an_iterable_that_is_always_a_list_is_said(name):
    found = list(lacking(current(), without(name, "iterators|once")))
    assert any("may be any iterable" in said for said in found), found


def test_a_case_at_equality_that_shows_nothing_is_told_from_none_at_all():
    exercise = exercises.get("reward_accuracy")
    ones = torch.ones(2, dtype=torch.float64)

    def sure(draw):
        yield Case("clear", {"chosen": ones, "rejected": 0 * ones})

    def nothing(draw):
        yield from sure(draw)
        yield Case("equal and empty", {"chosen": ones[:0], "rejected": ones[:0]})

    for cases in (sure, nothing):
        (said,) = unshown(replace(exercise, cases=cases), (0,), ())
        assert "no case is at equality" in said
    same = replace(exercise, reference=unconcerned, name="reward_accuracy")
    (said,) = unshown(replace(same, cases=exercise.cases), (0,), ())
    assert "the cases at equality (“" in said and "no case is at equality" not in said


def unconcerned(chosen, rejected):
    return ((chosen > rejected) | True).to(chosen.dtype).mean()
