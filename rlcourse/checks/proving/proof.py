"""Proof that the checks say what they claim: ``rlcourse prove [NAME …]``.

For every exercise and seed, visible and hidden: the reference and every alternative pass, the stub
fails, and every mistake is rejected and named as itself. Where there is an oracle, the reference
agrees with it. A *paraphrase* of a mistake has its effect in other words, and gets its name; a
*neighbor* looks like it and has another effect, and does not. An error that is asked for is
compared by its type alone, or an answer whose words differ would be refused. A contest is proven on
two variants, the public one and one that no student has seen, which takes about a minute.
"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from itertools import product

from rlcourse.checks.asking.calling import Outcome, call_all, describe
from rlcourse.checks.exercise import Exercise, Mistake
from rlcourse.checks.judging.exam import Exam, judge
from rlcourse.checks.judging.sketch import Edit
from rlcourse.checks.judging.trial import Trial
from rlcourse.checks.telling.result import Result

SEEDS = (0, 1, 2, 3, 4)
VARIANTS = ((0, False), (20_261_124, True))  # of a contest


@dataclass(frozen=True)
class Row:
    """One function examined once: what it should have got, and what it got."""

    exercise: str
    kind: str  # reference, alternative, stub, oracle, mistake, paraphrase, neighbor
    function: str
    seed: int
    hidden: bool
    ok: bool
    verdict: str


def prove(exercises: Iterable[Exercise], seeds: Iterable[int] = SEEDS) -> list[Row]:
    """A row per function, seed and visibility; the proof holds when every row is ``ok``."""
    return [
        row
        for exercise in exercises
        for seed, hidden in (VARIANTS if exercise.contest else product(seeds, (False, True)))
        for row in _prove_one(exercise, seed, hidden)
    ]


def _prove_one(exercise: Exercise, seed: int, hidden: bool) -> Iterator[Row]:
    exam = Exam(exercise, seed, hidden)

    def row(kind: str, function: str, ok: bool, verdict: str) -> Row:
        return Row(exercise.name, kind, function, seed, hidden, ok, verdict)

    def examine(fn: Callable, outcomes: list[Outcome] | None = None) -> Result:
        if exercise.contest:
            return Trial(exercise, seed).examine(describe(fn), fn)
        return exam.judge(describe(fn), outcomes or call_all(fn, exam.cases))

    for kind, functions in (
        ("reference", (exercise.reference,)),
        ("alternative", exercise.alternatives),
    ):
        for fn in functions:
            result = examine(fn)
            yield row(kind, fn.__name__, result.passed, result.headline)
    if unsaid := _errors_compared_by_their_words(exam):
        yield row("reference", exercise.reference.__name__, False, f"add raises=True to {unsaid}")
    result = examine(stub_of(exercise))
    yield row("stub", exercise.name, result.unwritten and result.score == 0, result.headline)
    if exercise.oracle:
        outcomes = call_all(exercise.oracle, exam.cases)
        apart = [
            case.label
            for case, expected, outcome in zip(exam.cases, exam.expected, outcomes, strict=True)
            if judge(exercise, case, expected, outcome)
        ]
        yield row("oracle", exercise.oracle.__name__, not apart, f"differs on {apart}")
    for mistake in exercise.mistakes:
        result = examine(mistake.implementation, _known_outcomes(exam, mistake))
        named = not result.passed and result.mistake == mistake.name
        said = result.mistake or result.message
        if result.passed:
            said = "it is not rejected: no case tells it from a right answer"
        yield row("mistake", mistake.name, named, said)
        alike = [("paraphrase", fn) for fn in mistake.paraphrases if not hidden]
        alike += [("neighbor", fn) for fn in mistake.neighbors if not hidden]
        for kind, fn in alike:
            name = examine(fn).mistake
            said = f"it is called “{name}”" if name else "it gets no name"
            ok = (name == mistake.name) == (kind == "paraphrase")
            yield row(kind, f"{mistake.name}: {_title(fn)}", ok, said)


def _known_outcomes(exam: Exam, mistake: Mistake) -> list[Outcome] | None:
    """What the mistake does on all cases, which the exam needs to name others, too. None where a
    second call may do something else."""
    first = exam.cases[:1]
    if exam.exercise.suspects or exam.exercise.contest or exam.exercise.observe:
        return None
    if call_all(mistake.implementation, first)[0].repeatable is False:
        return None
    return [exam.outcome_of(mistake, i) for i in range(len(exam.cases))]


def _title(fn: Callable) -> str:
    if isinstance(fn, Edit):
        return " and ".join(f"`{new}`" for _, _, new in fn.spans)
    return fn.__name__


def _errors_compared_by_their_words(exam: Exam) -> list[str]:
    """The labels of cases on which the reference raises, and which do not say so."""
    if (
        exam.exercise.suspects or exam.exercise.contest
    ):  # a student's own test may raise whatever it likes
        return []
    both = zip(exam.cases, exam.expected, strict=True)
    return [case.label for case, outcome in both if outcome.error and not case.raises]


def stub_of(exercise: Exercise) -> Callable:
    """What a student starts from."""

    def stub(*args, **kwargs):
        raise NotImplementedError

    stub.__name__ = exercise.name
    return stub


def report(
    exercises: Iterable[Exercise],
    seeds: Iterable[int] = SEEDS,
    lacking: Callable[[Exercise], Iterable[str]] = lambda exercise: (),
) -> bool:
    """Print a line per exercise and one per failure; whether the proof holds.

    `lacking` finds what else an exercise needs, a sentence each; these are failures, too.
    """
    holds = True
    for exercise in exercises:
        rows = prove([exercise], seeds)
        wrong = [row for row in rows if not row.ok]
        needed = list(lacking(exercise))
        holds = holds and not (wrong or needed)
        sign = "✗" if wrong or needed else "✓"
        print(
            f"{sign} {exercise.name}: {len(exercise.mistakes)} mistakes and "
            f"{len(exercise.alternatives)} alternatives, {len(rows)} verdicts, {len(wrong)} wrong",
            flush=True,
        )
        for row in wrong:
            place = f"seed {row.seed}{', hidden' if row.hidden else ''}"
            print(f"    {row.kind} “{row.function}” ({place}): {row.verdict}")
        for sentence in needed:
            print(f"    {sentence}")
    return holds
