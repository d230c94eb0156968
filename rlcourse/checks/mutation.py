"""Trial by mutation: ``rlcourse prove --mutants N [NAME …]``.

Right answers (the reference and the alternatives) are changed at random, and each mutant is
checked like a student's function. One that passes although it is wrong shows a missing case; one
that is given a name must make that mistake on other cases as well; and none may upset the check.
"""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from rlcourse.checks.calling import call_all, describe, one_thread
from rlcourse.checks.exam import Exam
from rlcourse.checks.exercise import Exercise
from rlcourse.checks.mutating import Mutant, mutants
from rlcourse.checks.naming import find_mistake, is_true_of

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
    named: int = 0
    findings: list[Finding] = field(default_factory=list)

    def count(self, kind: str) -> int:
        return sum(finding.kind == kind for finding in self.findings)

    @property
    def is_clean(self) -> bool:
        return all(finding.kind == "equivalent" for finding in self.findings)


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
    def verdict(self, mutant: Mutant, of: str) -> tuple[str, str | None, list[Finding]]:
        """("rejected", "passed" or "equivalent", the name given, what is wrong with the check)."""
        fn, name, rejected, findings = mutant.function, None, False, []
        for exam in self.tried:
            try:
                result = exam.judge(describe(fn), call_all(fn, exam.cases, self.repeat))
            except Exception as error:  # whatever it is, a student would see it
                findings.append(Finding("raised", of, mutant.diff, repr(error)))
                return "rejected", None, findings
            rejected = rejected or not result.passed
            if result.mistake:
                name = result.mistake
                if not self._is_true(exam, fn):
                    findings.append(Finding("false name", of, mutant.diff, result.message))
        if rejected:
            return "rejected", name, findings
        apart = any(self._failed(exam, fn).failing for exam in self.fresh)
        kind = "passed" if apart else "equivalent"
        return kind, None, [Finding(kind, of, mutant.diff)]

    def _failed(self, exam: Exam, fn):
        return exam.examine(describe(fn), call_all(fn, exam.cases, self.repeat))

    def _is_true(self, tried: Exam, fn) -> bool:
        """Whether the mistake found in one drawing explains the answer in all the fresh ones."""
        named = find_mistake(tried, self._failed(tried, fn))
        if named is None:
            return False
        return all(is_true_of(named, exam, self._failed(exam, fn)) for exam in self.fresh)


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
        kind, name, findings = court.verdict(mutant, of)
        tally.mutants += 1
        tally.rejected += kind == "rejected"
        tally.equivalent += kind == "equivalent"
        tally.named += name is not None
        tally.findings += findings
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


COLUMNS = "{:<28}{:>9}{:>12}{:>10}{:>8}{:>15}{:>8}{:>8}"


def report(
    exercises: Iterable[Exercise],
    count: int,
    show_equivalent: bool = False,
    seeds: Iterable[int] = (0,),
) -> bool:
    """Print a line per exercise, and every mutant that shows a fault; whether there is none."""
    heads = ("equivalent", "rejected", "named", "named falsely", "passed", "raised")
    print(COLUMNS.format("", "mutants", *heads))
    clean = True
    for exercise in exercises:
        with bounded_memory():
            tally = try_mutants(exercise, count, seeds)
        counts = tally.mutants, tally.equivalent, tally.rejected, tally.named
        faults = [tally.count(kind) for kind in ("false name", "passed", "raised")]
        print(COLUMNS.format(tally.exercise, *counts, *faults), flush=True)
        clean = clean and tally.is_clean
        for finding in tally.findings:
            if show_equivalent or finding.kind != "equivalent":
                _show(finding)
    return clean


def _show(finding: Finding) -> None:
    print(f"    {finding.kind}, a change to {finding.of}")
    for line in [*finding.diff.splitlines(), *finding.words.splitlines()[:3]]:
        print(f"        {line}")
