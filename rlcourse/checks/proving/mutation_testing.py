"""Mutation testing of the checks: ``rlcourse prove --mutants N [NAME …]``.

Right answers (the reference and the alternatives) are changed at random, and each mutant is
checked like a student's function. One that passes although it is wrong shows a missing case; one
that is given a name must have the same numbers on other cases as well; and none may upset the
check. What raises nearly everywhere is told by its error and its line, and needs no name.
"""

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
from rlcourse.checks.telling.diagnose import explains_its_error

TRIED = 11  # seed of the check itself
FRESH = (101, 102)  # and of drawings that it has not seen
MEMORY = 4 << 30  # bytes; `text * number` asks for all there is
MANY = 20  # cases for which an exam remembers what several mistakes give: mutants are many


@dataclass(frozen=True)
class Finding:
    """A mutant that shows a fault of the check, or one that nothing tells from a right answer."""

    kind: str  # "passed", "false name", "raised", "equivalent"
    of: str  # the function that was changed
    diff: str
    words: str = ""


@dataclass
class Tally:
    """What became of the mutants of one exercise."""

    exercise: str
    mutants: int = 0
    equivalent: int = 0
    rejected: int = 0
    raising: int = 0  # of the rejected: told by their errors
    explained: int = 0  # of these: where the cause is said as well
    named: int = 0  # by a declared mistake
    findings: list[Finding] = field(default_factory=list)

    def count(self, kind: str) -> int:
        return sum(finding.kind == kind for finding in self.findings)

    @property
    def shares(self) -> tuple[float, float, float]:
        """Of those that return a result, of those that raise, and of all that are rejected: how
        many are told what is wrong, by name or by the cause of their error."""
        returning = self.rejected - self.raising

        def share(some: int, of: int) -> float:
            return some / of if of else 1.0

        every = share(self.named + self.explained, self.rejected)
        return share(self.named, returning), share(self.explained, self.raising), every

    def __add__(self, other: "Tally") -> "Tally":
        counts = {n: getattr(self, n) + getattr(other, n) for n in COUNTS}
        return Tally(self.exercise, **counts, findings=[*self.findings, *other.findings])

    @property
    def is_clean(self) -> bool:
        return all(finding.kind == "equivalent" for finding in self.findings)


COUNTS = ("mutants", "equivalent", "rejected", "raising", "explained", "named")


@dataclass(frozen=True)
class Verdict:
    """What became of one mutant, and what is wrong with the check."""

    kind: str  # "rejected", "passed" or "equivalent"
    told: tuple[str, ...] = ()  # the counts that it adds to; none where only numbers are shown
    findings: tuple[Finding, ...] = ()


class Court:
    """The drawings of one exercise on which its mutants are tried."""

    def __init__(self, exercise: Exercise):
        self.exercise = exercise
        self.tried = [Exam(exercise, TRIED, hidden) for hidden in (False, True)]
        self.fresh = [Exam(exercise, seed, hidden) for seed in FRESH for hidden in (False, True)]
        for exam in self.tried:
            exam.kept = MANY
        self.repeat = exercise.observe is not None  # where nothing is drawn, once is enough

    @one_thread()
    def verdict(self, mutant: Mutant, of: str) -> Verdict:
        """What the checks make of the mutant."""
        fn, rejected = mutant.function, False
        told: tuple[str, ...] = ()
        findings: list[Finding] = []
        for exam in self.tried:
            try:
                result = exam.judge(describe(fn), call_all(fn, exam.cases, self.repeat))
            except Exception as error:  # whatever it is, a student would see it
                findings.append(Finding("raised", of, mutant.diff, repr(error)))
                return Verdict("rejected", findings=tuple(findings))
            rejected = rejected or not result.passed
            if result.mistake:
                told = ("named",)
                if not self._is_true(exam, fn):
                    findings.append(Finding("false name", of, mutant.diff, result.message))
            elif not result.passed and not told:
                told = _of_errors(self._failed(exam, fn))
        if rejected:
            return Verdict("rejected", told, tuple(findings))
        apart = any(self._failed(exam, fn).failing for exam in self.fresh)
        kind = "passed" if apart else "equivalent"
        return Verdict(kind, findings=(Finding(kind, of, mutant.diff),))

    def _failed(self, exam: Exam, fn):
        return exam.examine(describe(fn), call_all(fn, exam.cases, self.repeat))

    def _is_true(self, tried: Exam, fn) -> bool:
        """Whether what was found in one drawing explains the answer in all the fresh ones."""
        failed = self._failed(tried, fn)
        named = find_mistake(tried, failed)
        if named is None:
            return False
        return all(is_true_of(named, exam, self._failed(exam, fn)) for exam in self.fresh)


def _of_errors(failed: FailedCheck) -> tuple[str, ...]:
    """Whether it is told by its errors, and whether their cause is said."""
    if not failed.is_told_by_errors:
        return ()
    return ("raising", "explained") if explains_its_error(failed) else ("raising",)


def try_mutants(exercise: Exercise, count: int, seeds: Iterable[int] = (0,)) -> Tally:
    """For each seed up to `count` mutants of the reference and the alternatives, in equal shares.

    What is drawn again with another seed is counted once.
    """
    tally, court = Tally(exercise.name), Court(exercise)
    tried: set[tuple[str, str]] = set()
    drawn = (pair for seed in seeds for pair in _shared(exercise, count, seed))
    for of, mutant in drawn:
        if (of, mutant.diff) in tried:
            continue
        tried.add((of, mutant.diff))
        verdict = court.verdict(mutant, of)
        tally.mutants += 1
        tally.rejected += verdict.kind == "rejected"
        tally.equivalent += verdict.kind == "equivalent"
        for count_of in verdict.told:
            setattr(tally, count_of, getattr(tally, count_of) + 1)
        tally.findings += verdict.findings
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


COLUMNS = "{:<28}{:>9}{:>12}{:>10}{:>9}{:>11}{:>7}{:>16}{:>15}{:>8}{:>8}"


def report(
    exercises: Iterable[Exercise],
    count: int,
    show_equivalent: bool = False,
    seeds: Iterable[int] = (0,),
) -> bool:
    """Print a line per exercise, and every mutant that shows a fault; whether there is none.

    "told" is the share for which the check says what is wrong: of those that return a result, by a
    declared mistake; of those that raise, by a sentence on the cause of the error, beyond its own
    text; of all that are rejected.
    """
    heads = ("equivalent", "rejected", "raising", "explained", "named", "told")
    print(COLUMNS.format("", "mutants", *heads, "named falsely", "passed", "raised"))
    total = Tally("all together")
    for exercise in exercises:
        with bounded_memory():
            tally = try_mutants(exercise, count, seeds)
        _print_line(tally)
        total += tally
        for finding in tally.findings:
            if show_equivalent or finding.kind != "equivalent":
                _show(finding)
    _print_line(total)
    return total.is_clean


def _print_line(tally: Tally) -> None:
    counts = [getattr(tally, name) for name in COUNTS]
    faults = [tally.count(kind) for kind in ("false name", "passed", "raised")]
    shares = " ".join(f"{share:.0%}" for share in tally.shares)
    print(COLUMNS.format(tally.exercise, *counts, shares, *faults), flush=True)


def _show(finding: Finding) -> None:
    print(f"    {finding.kind}, a change to {finding.of}")
    for line in [*finding.diff.splitlines(), *finding.words.splitlines()[:3]]:
        print(f"        {line}")
