"""Proof that a likeness is true: declared mistakes, as if they were not declared.

What the fallback says about one must give its numbers on drawings of the cases that are new to it.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace

from rlcourse.checks.calling import call_all, describe, one_thread
from rlcourse.checks.exam import Exam
from rlcourse.checks.exercise import Exercise
from rlcourse.checks.fallback import find_likeness
from rlcourse.checks.naming import is_true_of

FRESH = 101  # seed of the drawings that have not been seen


@dataclass(frozen=True)
class Told:
    """What the fallback says about one declared mistake; nothing if it is silent."""

    mistake: str
    likeness: str = ""
    is_true: bool = True


def prove_likeness(exercise: Exercise, seed: int = 0) -> Iterator[Told]:
    """Every declared mistake that does not raise in most of its failing cases."""
    if exercise.suspects:
        return
    alone = replace(exercise, mistakes=())
    exam = Exam(alone, seed)
    fresh = [Exam(alone, FRESH, hidden) for hidden in (False, True)]
    for mistake in exercise.mistakes:
        with one_thread():
            yield _told(exam, fresh, mistake)


def _told(exam: Exam, fresh: list[Exam], mistake) -> Told:
    def failed(tried: Exam):
        fn = mistake.implementation
        return tried.examine(describe(fn), call_all(fn, tried.cases, repeat=False))

    likeness = find_likeness(exam, failed(exam))
    if likeness is None:
        return Told(mistake.name)
    is_true = all(is_true_of(likeness, other, failed(other)) for other in fresh)
    return Told(mistake.name, likeness.mistake.name, is_true)
