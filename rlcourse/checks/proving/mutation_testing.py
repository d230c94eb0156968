"""Mutation testing of the checks: ``rlcourse prove --mutants N [NAME …]``.

Right answers (the reference and the alternatives) are changed at random, and each mutant is
checked like a student's function. One that passes although it is wrong shows a missing case; one
that is given a name must have the same numbers on other cases as well; and none may upset the
check. What raises nearly everywhere is told by its error and its line, and needs no name.
"""

from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from rlcourse.checks.asking.calling import call_all, describe, one_thread
from rlcourse.checks.exercise import Exercise
from rlcourse.checks.judging.exam import Exam
from rlcourse.checks.judging.failed import FailedCheck
from rlcourse.checks.judging.naming import find_mistake, is_true_of
from rlcourse.checks.proving.mutants import Mutant, mutants

TRIED = 11  # seed of the check itself
FRESH = (101, 102)  # and of drawings that it has not seen
MEMORY = 4 << 30  # bytes; `text * number` asks for all there is
EQUIVALENT, REJECTED, RAISING, NAMED = "equivalent", "rejected", "raising", "named"
FALSE_NAME, PASSED, RAISED = "false name", "passed", "raised"  # faults of the check
COLUMNS = (EQUIVALENT, REJECTED, RAISING, NAMED, FALSE_NAME, PASSED, RAISED)
LINE = "{:<28}{:>9}" + "{:>12}" * len(COLUMNS)


@dataclass(frozen=True)
class Finding:
    """A mutant that shows a fault of the check, or one that nothing tells from a right answer."""

    kind: str
    of: str  # the function that was changed
    diff: str
    words: str = ""


@dataclass
class Tally:
    """What became of the mutants of one exercise. Of the rejected, some raise in most cases, and
    are told by their errors; of the others some are named."""

    exercise: str
    mutants: int = 0
    counts: Counter[str] = field(default_factory=Counter)
    findings: list[Finding] = field(default_factory=list)

    @property
    def is_clean(self) -> bool:
        return all(finding.kind == EQUIVALENT for finding in self.findings)

    def add(self, of: str, mutant: Mutant, found: dict[str, str]) -> None:
        """Count a mutant; `found` are its kinds, with words about it."""
        self.mutants += 1
        self.counts.update(found.keys())
        self.findings += [
            Finding(kind, of, mutant.diff, words)
            for kind, words in found.items()
            if kind not in (REJECTED, RAISING, NAMED)
        ]


class Court:
    """The drawings of one exercise on which its mutants are tried."""

    def __init__(self, exercise: Exercise):
        self.tried = [Exam(exercise, TRIED, hidden) for hidden in (False, True)]
        self.fresh = [Exam(exercise, seed, hidden) for seed in FRESH for hidden in (False, True)]
        self.repeat = exercise.observe is not None  # where nothing is drawn, once is enough

    @one_thread()
    def verdict(self, mutant: Mutant) -> dict[str, str]:
        """What the checks make of the mutant: the kinds that it counts as, and words about it."""
        fn, found = mutant.function, dict[str, str]()
        for exam in self.tried:
            try:
                result = exam.judge(describe(fn), call_all(fn, exam.cases, self.repeat))
            except Exception as error:  # whatever it is, a student would see it
                return {REJECTED: "", RAISED: repr(error)}
            if result.passed:
                continue
            found[REJECTED] = ""
            failed = self._failed(exam, fn)
            if result.mistake:
                found[NAMED] = ""
                if not self._is_true(exam, failed, fn):
                    found[FALSE_NAME] = result.message
            elif failed.is_told_by_errors:
                found[RAISING] = ""
        if not found:
            apart = any(self._failed(exam, fn).failing for exam in self.fresh)
            found[PASSED if apart else EQUIVALENT] = ""
        return found

    def _failed(self, exam: Exam, fn) -> FailedCheck:
        return exam.examine(describe(fn), call_all(fn, exam.cases, self.repeat))

    def _is_true(self, tried: Exam, failed: FailedCheck, fn) -> bool:
        """Whether what was found in one drawing explains the answer in all the fresh ones."""
        named = find_mistake(tried, failed)
        return named is not None and all(
            is_true_of(named, exam, self._failed(exam, fn)) for exam in self.fresh
        )


def try_mutants(exercise: Exercise, count: int, seeds: Iterable[int] = (0,)) -> Tally:
    """For each seed up to `count` mutants of the reference and the alternatives, in equal shares.

    What is drawn again with another seed is counted once.
    """
    tally, court = Tally(exercise.name), Court(exercise)
    tried: set[tuple[str, str]] = set()
    for seed in seeds:
        for of, mutant in _shared(exercise, count, seed):
            if (of, mutant.diff) not in tried:
                tried.add((of, mutant.diff))
                tally.add(of, mutant, court.verdict(mutant))
    return tally


@contextmanager
def bounded_memory():
    """A mutant that asks for more than MEMORY gets a MemoryError; on Linux, that is."""
    statm = Path("/proc/self/statm")
    if not statm.exists():
        yield
        return
    import resource

    soft, hard = resource.getrlimit(resource.RLIMIT_AS)
    most = int(statm.read_text().split()[0]) * resource.getpagesize() + MEMORY
    bounded = [n for n in (most, soft, hard) if n != resource.RLIM_INFINITY]
    resource.setrlimit(resource.RLIMIT_AS, (min(bounded), hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_AS, (soft, hard))


def _shared(exercise: Exercise, count: int, seed: int) -> Iterator[tuple[str, Mutant]]:
    functions = (exercise.reference, *exercise.alternatives)
    sources = {fn.__name__: mutants(fn, count, seed) for fn in functions}
    while sources:
        for name in list(sources):
            mutant = next(sources[name], None)
            if mutant is None:
                del sources[name]
                continue
            yield name, mutant
            count -= 1
            if not count:
                return


def report(
    exercises: Iterable[Exercise],
    count: int,
    show_equivalent: bool = False,
    seeds: Iterable[int] = (0,),
) -> bool:
    """Print a line per exercise, and every mutant that shows a fault; whether there is none."""
    print(LINE.format("", "mutants", *COLUMNS))
    total = Tally("all together")
    for exercise in exercises:
        with bounded_memory():
            tally = try_mutants(exercise, count, seeds)
        _print_line(tally)
        total.mutants += tally.mutants
        total.counts += tally.counts
        total.findings += tally.findings
        for finding in tally.findings:
            if show_equivalent or finding.kind != EQUIVALENT:
                print(f"    {finding.kind}, a change to {finding.of}")
                for line in [*finding.diff.splitlines(), *finding.words.splitlines()[:3]]:
                    print(f"        {line}")
    _print_line(total)
    return total.is_clean


def _print_line(tally: Tally) -> None:
    counts = [tally.counts[name] for name in COLUMNS]
    print(LINE.format(tally.exercise, tally.mutants, *counts), flush=True)
