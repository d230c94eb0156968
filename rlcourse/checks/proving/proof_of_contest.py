"""Proof of a contest: the reference reaches the last level, and every mistake gets its name.

Two variants: the public one, and one that no student has seen. This takes about a minute.
"""

from collections.abc import Iterator

from rlcourse.checks.asking.calling import describe
from rlcourse.checks.exercise import Exercise
from rlcourse.checks.judging.trial import Trial
from rlcourse.checks.proving.proof import stub_of

UNSEEN = 20_261_124


def lacking(exercise: Exercise) -> Iterator[str]:
    """A sentence for each thing that does not hold."""
    for variant in (0, UNSEEN):
        trial, where = (
            Trial(exercise, variant),
            "an unseen variant" if variant else "the public one",
        )
        for kind, fn in (("reference", exercise.reference), ("stub", stub_of(exercise))):
            result = trial.examine(describe(fn), fn)
            if not (result.passed if kind == "reference" else result.unwritten):
                yield f"on {where} the {kind} gets: {result.headline}"
        for mistake in exercise.mistakes:
            result = trial.examine(describe(mistake.implementation), mistake.implementation)
            if result.passed or result.mistake != mistake.name:
                yield f"on {where} “{mistake.name}” gets: {result.message}"


def report(exercises: list[Exercise]) -> bool:
    """Print a line per contest and one for each thing that does not hold."""
    holds = True
    for exercise in exercises:
        wrong = list(lacking(exercise))
        sign = "✗" if wrong else "✓"
        print(f"{sign} {exercise.name}: a contest, {len(exercise.mistakes)} mistakes", flush=True)
        for sentence in wrong:
            print(f"    {sentence}")
        holds = holds and not wrong
    return holds
