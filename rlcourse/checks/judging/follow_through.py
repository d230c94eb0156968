"""One bug is charged once: the points of a function that builds on a wrong one.

A function that fails, and uses functions of its lesson that fail as well, is judged a second time
with references in their place. Only functions that stand above it are replaced, or two that call
each other would each be right by the other's reference. Tests that students write are judged as
they are: next to the function's reference, a test would have nothing to find out.
"""

from collections.abc import Collection, Mapping, Sequence

from rlcourse.checks.exercise import Exercise
from rlcourse.checks.telling.result import Result

UNDEFINED = "is not defined"


def replaceable(exercise: Exercise, above: Sequence[Exercise]) -> list[Exercise]:
    """Those of the exercises `above` it, in its lesson, that a reference may stand in for."""
    return [] if exercise.suspects or exercise.contest else [o for o in above if not o.suspects]


def is_better(first: Sequence[Result], again: Sequence[Result]) -> bool:
    """Whether the verdicts with references in place count."""
    return again[-1].score >= first[-1].score


def counting(
    first: Sequence[Result],
    again: Sequence[Result] | None,
    wrong: Mapping[str, str],
    replaced: Collection[str],
) -> Sequence[Result]:
    """Of verdicts on an answer those that count: the `first`, or those with references in place of
    the functions `replaced`, where the points, by the last of each, are no fewer. The second tell
    the answer's own faults from others'.

    `wrong` are all the functions that it uses and that are not right, and what is said of each.
    """
    if again and is_better(first, again):
        others = {name: state for name, state in wrong.items() if name in replaced}
        return [result.with_right(others) for result in again]
    for name, state in wrong.items():
        return [r if r.passed else r.blamed_on(name, state) for r in first]
    return first
