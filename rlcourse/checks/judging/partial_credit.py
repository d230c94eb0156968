"""How much of an exercise's points an answer earns that is not right on every case."""

from rlcourse.checks.judging import testing
from rlcourse.checks.judging.comparing import UNPROVEN
from rlcourse.checks.judging.failed import FailedCheck

PARTIAL_CREDIT = 0.5  # at most, for a function that agrees on some cases only
ALMOST_CREDIT = 0.8  # at least, for one that is right on all but cases at the edge


def partial_credit(failed: FailedCheck, edges: tuple[str, ...]) -> float:
    """The share of the points, in [0, 1); `edges` are the ``missed_edges``."""
    if failed.exercise.suspects:
        return testing.credit(failed.cases, failed.failing)
    if not edges:
        wrong = sum(any(d.kind not in UNPROVEN for d in found) for found in failed.differences)
        return PARTIAL_CREDIT * (1 - wrong / len(failed.cases))
    if set(edges) & set(UNPROVEN.values()):
        return ALMOST_CREDIT
    at_the_edge = [i for i, case in enumerate(failed.cases) if case.edge]
    kept = len(set(at_the_edge) - set(failed.failing)) / len(at_the_edge)
    return ALMOST_CREDIT + (1 - ALMOST_CREDIT) * kept


def missed_edges(failed: FailedCheck) -> tuple[str, ...]:
    """What is missing, in words, if nothing is wrong at the core; else nothing.

    A gradient of a constant, or a changed argument, is not part of the core either: the numbers are
    right, and in a graded run only the side that answers can see it.
    """
    words: dict[str, None] = {}
    for i in failed.failing:
        kinds = {d.kind for d in failed.differences[i]}
        if kinds & {"unrepeatable", "unvaried"}:
            return ()  # whichever case has shown it
        if failed.cases[i].edge and not kinds <= set(UNPROVEN):
            words[failed.cases[i].label] = None
        elif kinds <= set(UNPROVEN):
            words |= dict.fromkeys(UNPROVEN[kind] for kind in sorted(kinds))
        else:
            return ()
    return tuple(words)
