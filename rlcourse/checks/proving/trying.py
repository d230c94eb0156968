"""Wrong answers that nobody declared: ``rlcourse prove --mutants N`` and ``--pairs N``.

Mutants are right answers (the reference and the alternatives) with one likely slip; pairs are two
or three declared mistakes made at once. Each is checked like a student's function. One that passes
although it is wrong shows a missing case; one that gets a name must have the same numbers on cases
that the check has not seen. What gets no name is told by its error, or by a repair.
"""

import ast
import random
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from itertools import chain, islice, zip_longest

import torch

from rlcourse.checks.asking.calling import call_all, describe, one_thread
from rlcourse.checks.exercise import Exercise
from rlcourse.checks.judging.exam import Exam
from rlcourse.checks.judging.failed import FailedCheck
from rlcourse.checks.judging.naming import find_mistake, is_true_of
from rlcourse.checks.judging.several import together, ways
from rlcourse.checks.telling.rewriting import Source

FRESH = 101  # seed of drawings that the check has not seen
EQUIVALENT, NAMED, UNNAMED = "equivalent", "named", "unnamed"
PASSED, FALSE_NAME = "passed", "false name"  # faults of the check
COLUMNS = (EQUIVALENT, NAMED, UNNAMED, PASSED, FALSE_NAME)
LINE = "{:<30}{:>8}" + "{:>12}" * len(COLUMNS)
Answer = tuple[str, Callable]  # what it is, and the function


def mutants(exercise: Exercise, count: int, seed: int) -> Iterator[Answer]:
    """Up to `count`, of each right answer as many as of the others."""
    case = exercise.draw_cases(seed)[0]
    functions = (exercise.reference, *exercise.alternatives)
    each = (_mutants(fn, case, seed) for fn in functions)
    yield from islice(filter(None, chain.from_iterable(zip_longest(*each))), count)


def _mutants(fn: Callable, case, seed: int) -> Iterator[Answer]:
    try:
        source = Source(fn)
    except ValueError:
        return
    found = [(number, c) for number, c in source.changes(case) if number == 0 and c.rank < 2]
    random.Random(f"{fn.__name__} {seed}").shuffle(found)
    for number, change in found:
        if function := source.changed(number, change):
            new = change.new if isinstance(change.new, str) else ast.unparse(change.new)
            line, _ = source.line(number, change)
            yield f"{fn.__name__}, line {line}: {ast.unparse(change.old)} → {new}", function


def several(exercise: Exercise, count: int, seed: int) -> Iterator[Answer]:
    """Up to `count` pairs of declared mistakes, and a quarter as many triples."""
    for size, most in ((2, count), (3, count // 4)):
        found = list(ways(exercise, size))
        for parts in random.Random(f"{seed} {size}").sample(found, min(most, len(found))):
            yield " + ".join(part.name for part in parts), together(parts).implementation


class Court:
    """The drawings of one exercise on which answers are tried: by a student, and by nobody."""

    def __init__(self, exercise: Exercise, seed: int):
        self.tried = [Exam(exercise, seed, hidden) for hidden in (False, True)]
        self.fresh = [Exam(exercise, FRESH + seed, hidden) for hidden in (False, True)]
        self.repeat = exercise.observe is not None  # where nothing is drawn, once is enough

    @one_thread()
    def verdict(self, fn: Callable) -> str:
        """What the checks make of a wrong answer."""
        verdict, fresh = PASSED, [(exam, self._failed(exam, fn)) for exam in self.fresh]
        for exam in self.tried:
            failed = self._failed(exam, fn)
            if failed.failing:
                verdict = UNNAMED if verdict == PASSED else verdict
                if named := find_mistake(exam, failed):
                    verdict = NAMED
                    if not all(is_true_of(named, *pair) for pair in fresh):
                        return FALSE_NAME
        if verdict == PASSED and not any(failed.failing for _, failed in fresh):
            return EQUIVALENT
        return verdict

    def _failed(self, exam: Exam, fn: Callable) -> FailedCheck:
        return exam.examine(describe(fn), call_all(fn, exam.cases, self.repeat))


def report(
    exercises: Iterable[Exercise],
    answers: Callable[[Exercise, int, int], Iterator[Answer]],
    count: int,
    seeds: Iterable[int],
) -> bool:
    """Print a line per exercise, and every answer that shows a fault; whether there is none."""
    print(LINE.format(answers.__name__, "tried", *COLUMNS))
    total: Counter[str] = Counter()
    for exercise in exercises:
        found, tried = Counter[str](), set[str]()
        for seed in seeds:
            court = Court(exercise, seed)
            with torch.random.fork_rng(devices=[]):
                for what, fn in answers(exercise, count, seed):
                    verdict = court.verdict(fn) if what not in tried else ""
                    tried.add(what)
                    found[verdict] += 1
                    if verdict in (PASSED, FALSE_NAME):
                        print(f"    {verdict} (seed {seed}): {what}")
        _print_line(exercise.name, found)
        total += found
    _print_line("all together", total)
    return not (total[PASSED] or total[FALSE_NAME])


def _print_line(name: str, found: Counter[str]) -> None:
    counts = [found[column] for column in COLUMNS]
    print(LINE.format(name, sum(counts), *counts), flush=True)
