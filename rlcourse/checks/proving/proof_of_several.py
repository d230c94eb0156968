"""Proof that mistakes made together are named rightly: ``rlcourse prove --pairs [NAME …]``.

Declared mistakes are made two at a time, every possible pair or a sample, and three at a time,
always a sample, and each is checked like a student's function. A name must be theirs, or that of
something which gives the same numbers on cases that the check has not seen.
"""

import random
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from rlcourse.checks.asking.calling import call_all, describe, one_thread
from rlcourse.checks.exercise import Exercise, Mistake
from rlcourse.checks.judging.exam import Exam
from rlcourse.checks.judging.naming import find_mistake, is_true_of
from rlcourse.checks.judging.several import edited, together, ways

NAMED, EQUIVALENT, CANCEL, UNNAMED, WRONG = "named", "equivalent", "cancel", "unnamed", "wrong"
TRIPLES = 40  # of an exercise, for each drawing of its cases


@dataclass(frozen=True)
class Verdict:
    """The verdict on several mistakes at once.

    ``kind`` is "named" where just these are named, "equivalent" where something is that gives the
    same numbers, "cancel" where together they are right, "unnamed" or "wrong".
    """

    parts: tuple[Mistake, ...]
    seed: int
    hidden: bool
    kind: str
    said: str = ""


def prove_several(
    exercise: Exercise, size: int, seeds: Iterable[int], sample: int | None = None
) -> Iterator[Verdict]:
    """All ways to make `size` mistakes at once, or a sample for each drawing of the cases."""
    for seed in seeds:
        for hidden in (False, True):
            chosen = list(ways(exercise, size))
            if sample is not None and sample < len(chosen):
                chosen = random.Random(f"{seed} {hidden} {size}").sample(chosen, sample)
            exam = Exam(exercise, seed, hidden)
            for parts in chosen:
                kind, said = judge_several(exam, parts)
                yield Verdict(parts, seed, hidden, kind, said)


@one_thread()
def judge_several(exam: Exam, parts: tuple[Mistake, ...]) -> tuple[str, str]:
    """The kind of verdict, and the name that is given."""
    fn = together(parts).implementation
    failed = exam.examine(describe(fn), call_all(fn, exam.cases, repeat=False))
    if not failed.failing:
        return CANCEL, ""
    named = find_mistake(exam, failed)
    if named is None:
        return UNNAMED, ""
    if set(named.parts) == set(parts):
        return NAMED, named.mistake.name
    other = exam.other_drawing
    elsewhere = other.examine(describe(fn), call_all(fn, other.cases, repeat=False))
    is_true = is_true_of(named, other, elsewhere)
    return EQUIVALENT if is_true else WRONG, named.mistake.name


COLUMNS = "{:<30}{:>8}{:>7}{:>12}{:>9}{:>9}{:>7}{:>9}"


def report(exercises: Iterable[Exercise], seeds: Iterable[int], pairs: int | None = None) -> bool:
    """Print a line per exercise whose mistakes are edits, every wrong name, and the sums.

    `pairs` is how many of them to try for each drawing of an exercise's cases; None is all.
    """
    print(COLUMNS.format("", "at once", NAMED, EQUIVALENT, CANCEL, UNNAMED, WRONG, "rightly"))
    sums: dict[int, Counter[str]] = {2: Counter(), 3: Counter()}
    for exercise in exercises:
        if not edited(exercise):
            continue
        for size, sample in ((2, pairs), (3, TRIPLES if pairs is None else min(pairs, TRIPLES))):
            found = list(prove_several(exercise, size, seeds, sample))
            count = Counter(verdict.kind for verdict in found)
            sums[size] += count
            _print_line(exercise.name, size, count)
            for verdict in found:
                if verdict.kind == WRONG:
                    names = " + ".join(part.name for part in verdict.parts)
                    place = f"seed {verdict.seed}{', hidden' if verdict.hidden else ''}"
                    print(f"    {names} ({place}): {verdict.said}")
    for size, count in sums.items():
        _print_line("all together", size, count)
    return not any(count[WRONG] for count in sums.values())


def _print_line(name: str, size: int, count: Counter[str]) -> None:
    rightly = count[NAMED] + count[EQUIVALENT]
    judged = rightly + count[UNNAMED] + count[WRONG]  # what cancels is right
    kinds = [count[kind] for kind in (NAMED, EQUIVALENT, CANCEL, UNNAMED, WRONG)]
    share = f"{rightly / judged:.1%}" if judged else ""
    print(COLUMNS.format(name, size, *kinds, share), flush=True)
