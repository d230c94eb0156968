"""Which two or three declared mistakes an answer has made at once.

Only mistakes that are edits of one sketch can be combined. All ways to make two of them, and some
to make three, are run on the most telling failing case, where nearly all drop out after one call.
The rest must give the answer's value and gradient on *every* case, and each of their parts must
show.
"""

import warnings
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from functools import lru_cache
from itertools import chain, combinations, islice
from typing import Any

import torch

from rlcourse.checks.asking.calling import arguments_of, as_data
from rlcourse.checks.asking.case import Case
from rlcourse.checks.exercise import Exercise, Mistake
from rlcourse.checks.judging.comparing import BESIDES, Tolerance, compare_values
from rlcourse.checks.judging.sketch import Edit, Sketch
from rlcourse.checks.telling.show import size_of

Parts = tuple[Mistake, ...]  # made at once
TRIED = 400  # ways: all of two mistakes, and those of three while there are fewer than these
FITTING = 100  # ways that fit the first case and are held against all of them
LARGE = 300  # numbers in a case beyond which each call takes longer


def edit_of(mistake: Mistake) -> Edit:
    """The edit that a mistake is."""
    assert isinstance(mistake.implementation, Edit)
    return mistake.implementation


@lru_cache(maxsize=10_000)
def together(parts: Parts) -> Mistake:
    """Several mistakes, made at once, as one."""
    if len(parts) == 1:
        return parts[0]
    edits = [edit_of(part) for part in parts]
    tolerances = [part.atol for part in parts if part.atol is not None]
    return Mistake(
        name=" + ".join(part.name for part in parts),
        implementation=edits[0].sketch.compiled(edits),
        diagnosis=" ".join(part.diagnosis for part in parts),
        atol=max(tolerances, default=None),
    )


def edited(exercise: Exercise) -> dict[Sketch, list[Mistake]]:
    """The mistakes that are edits, by the sketch that they change."""
    found: dict[Sketch, list[Mistake]] = {}
    for mistake in exercise.mistakes:
        if isinstance(mistake.implementation, Edit):
            found.setdefault(mistake.implementation.sketch, []).append(mistake)
    return found


def ways(exercise: Exercise, size: int) -> Iterator[Parts]:
    """Every choice of that many mistakes that can be made at once."""
    for mistakes in edited(exercise).values():
        for chosen in combinations(mistakes, size):
            pairs = combinations(map(edit_of, chosen), 2)
            if all(one.goes_with(other) for one, other in pairs):
                yield chosen


def results_of_several(exercise: Exercise, case: Case) -> list[tuple[Parts, Any]]:
    """Ways to make several mistakes, and the result of each on the case, if it has one."""
    pairs, found = list(ways(exercise, 2)), []
    triples = islice(ways(exercise, 3), max(0, TRIED - len(pairs)))
    with warnings.catch_warnings(action="ignore"), torch.no_grad():
        for parts in chain(pairs, triples):
            with suppress(Exception):
                value = together(parts).implementation(**arguments_of(case))
                found.append((parts, as_data(value)))
    return found


def find_several(trial) -> Parts:
    """Mistakes that together explain an answer, the first declared of ways that amount to the same;
    empty if there are none.

    `trial` is a `naming.Trial`, whose attempt says what to leave out of account.
    """
    attempt, failed, exam = trial.attempt, trial.failed, trial.exam
    telling = [i for i in attempt.failing if not failed.is_broken(i)]
    if attempt.negated or not telling or not edited(exam.exercise) or is_no_news(trial):
        return ()
    sizes = {i: size_of(failed.cases[i].arguments) for i in telling}
    probe = max(telling, key=lambda i: (sizes[i] <= LARGE, not failed.cases[i].edge, sizes[i]))
    derived = exam.exercise.derived if attempt.without_derived else ()
    value, of_size = failed.outcomes[probe].value, dict[int, list[Parts]]()
    for parts, theirs in exam.of_several(probe):
        if _fits(failed.cases[probe], together(parts), theirs, value, derived):
            of_size.setdefault(len(parts), []).append(parts)
    for size in sorted(of_size):
        found = [p for p in of_size[size][:FITTING] if _explains(trial, p, probe)]
        if found:
            return found[0] if _are_alike(exam, found) else ()
    return ()


def _fits(case: Case, whole: Mistake, theirs: Any, value: Any, derived: tuple[str, ...]) -> bool:
    """Whether a result is this one, save what follows from the rest of it."""
    rule = Tolerance.of(case if whole.atol is None else replace(case, atol=whole.atol))
    found = compare_values(theirs, value, rule, "")
    return all(d.kind in BESIDES or d.name in derived for d in found)


def is_no_news(trial) -> bool:
    """Whether nothing is ignored that was not ignored in the attempt before."""
    attempt, failed = trial.attempt, trial.failed
    beside = any(d.kind in BESIDES for found in failed.differences for d in found)
    return attempt.numbers_only and not (attempt.aside or attempt.without_derived or beside)


def _explains(trial, parts: Parts, probe: int) -> bool:
    """Whether the parts together give the answer's numbers everywhere, and each of them shows."""
    whole = together(parts)
    if not (trial.reproduces(whole, probe) and trial.reproduces_all(whole)):
        return False
    if not trial.is_everywhere(whole):
        return False
    return all(_shows(trial, parts, part) for part in parts)


def _shows(trial, parts: Parts, part: Mistake) -> bool:
    """Whether enough cases tell the parts together from those without this one."""
    whole, rest = together(parts), together(tuple(p for p in parts if p is not part))
    apart = [found for i in trial.seen() if (found := trial.apart(rest, whole, i))]
    kinds = {difference.kind for found in apart for difference in found}
    return len(apart) >= (1 if kinds <= set(BESIDES) else part.telling)


def _are_alike(exam, found: list[Parts]) -> bool:
    """Whether several explanations are one and the same function, on other cases too."""
    first, *others = map(together, found)
    return all(exam.other_drawing.same(first, other) for other in others)
