"""Proof that mistakes made together are named rightly: ``rlcourse prove --pairs [NAME …]``.

Declared mistakes are made two at a time, every possible pair or a sample, and three at a time,
always a sample, and each is checked like a student's function. A name must be theirs, or that of
something which gives the same numbers on cases that the check has not seen.
"""

import random
from collections import Counter
from collections.abc import Iterable
from itertools import product

from rlcourse.checks.asking.calling import call_all, describe, one_thread
from rlcourse.checks.exercise import Exercise, Mistake
from rlcourse.checks.judging.exam import Exam
from rlcourse.checks.judging.naming import find_mistake, is_true_of
from rlcourse.checks.judging.several import edited, together, ways

NAMED, UNNAMED, RIGHT, WRONG = "rightly named", "unnamed", "right together", "wrongly named"
COLUMNS = (NAMED, UNNAMED, RIGHT, WRONG)
LINE = "{:<30}{:>8}" + "{:>16}" * len(COLUMNS)
TRIPLES = 40  # of an exercise, for each drawing of its cases


def judge_several(exam: Exam, parts: tuple[Mistake, ...]) -> tuple[str, str]:
    """The verdict on several mistakes at once, and the name that is given."""
    fn = together(parts).implementation
    failed = exam.examine(describe(fn), call_all(fn, exam.cases, repeat=False))
    if not failed.failing:
        return RIGHT, ""
    named = find_mistake(exam, failed)
    if named is None:
        return UNNAMED, ""
    if set(named.parts) == set(parts):
        return NAMED, named.mistake.name
    other = exam.other_drawing
    elsewhere = other.examine(describe(fn), call_all(fn, other.cases, repeat=False))
    is_true = is_true_of(named, other, elsewhere)
    return NAMED if is_true else WRONG, named.mistake.name


@one_thread()
def prove_several(
    exercise: Exercise, size: int, seeds: Iterable[int], sample: int | None = None
) -> Counter[str]:
    """Judge all ways to make `size` mistakes at once, or a sample for each drawing of the cases;
    wrong names are printed."""
    counts: Counter[str] = Counter()
    for seed, hidden in product(seeds, (False, True)):
        chosen = list(ways(exercise, size))
        if sample is not None and sample < len(chosen):
            chosen = random.Random(f"{seed} {hidden} {size}").sample(chosen, sample)
        exam = Exam(exercise, seed, hidden)
        for parts in chosen:
            kind, said = judge_several(exam, parts)
            counts[kind] += 1
            if kind == WRONG:
                names = " + ".join(part.name for part in parts)
                print(f"    {names} (seed {seed}{', hidden' * hidden}): {said}")
    return counts


def report(exercises: Iterable[Exercise], seeds: Iterable[int], pairs: int | None = None) -> bool:
    """Print a line per exercise whose mistakes are edits, every wrong name, and the sums.

    `pairs` is how many of them to try for each drawing of an exercise's cases; None is all.
    """
    print(LINE.format("", "at once", *COLUMNS))
    sums: dict[int, Counter[str]] = {2: Counter(), 3: Counter()}
    for exercise in filter(edited, exercises):
        for size, sample in ((2, pairs), (3, TRIPLES if pairs is None else min(pairs, TRIPLES))):
            found = prove_several(exercise, size, seeds, sample)
            sums[size] += found
            print(LINE.format(exercise.name, size, *map(found.__getitem__, COLUMNS)), flush=True)
    for size, found in sums.items():
        print(LINE.format("all together", size, *map(found.__getitem__, COLUMNS)))
    return not any(found[WRONG] for found in sums.values())
