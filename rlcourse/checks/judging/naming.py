"""Which declared mistake an answer has made: a name, or none if it could be a coincidence.

A mistake is claimed only if it explains every failing case, in value and gradient, if enough cases
distinguish it from the right answer, and if no other declared mistake explains the answer as well.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

from rlcourse.checks.exercise import Mistake
from rlcourse.checks.judging.comparing import (
    BESIDES,
    Difference,
    compare_anything,
    is_apart,
    negative,
)
from rlcourse.checks.judging.failed import FailedCheck
from rlcourse.checks.judging.several import find_several, together
from rlcourse.checks.telling.show import WRONG

ENOUGH = 3  # cases: fewer that happen to agree are a coincidence
PROBES = 3  # failing cases, or a few more: one must be explained, or no other is looked at


@dataclass(frozen=True)
class Attempt:
    """One way to look for the mistake: on which cases, and what to ignore."""

    failing: list[int]  # cases that the mistake must reproduce
    aside: frozenset[int] = frozenset()  # cases that it need not
    numbers_only: bool = False  # other faults than wrong numbers are reported separately
    negated: bool = False  # the sign may be flipped as well
    without_derived: bool = False  # what follows from the rest of the result may differ

    def is_like(self, other: "Attempt") -> bool:
        """Whether it ignores the same things, maybe on other cases."""
        mine, theirs = ((a.numbers_only, a.negated, a.without_derived) for a in (self, other))
        return mine == theirs


@dataclass(frozen=True)
class Named:
    """A mistake that was recognized, or several at once, and how well."""

    mistake: Mistake
    everywhere: bool  # it also agrees where the answer is right
    attempt: Attempt
    several: tuple[Mistake, ...] = ()  # that were made at once

    def sentences(self) -> tuple[str, ...]:
        """What was done, and why it is wrong."""
        if self.several:
            return self._list()
        subject = "Your numbers" if self.everywhere else "Where they differ, your numbers"
        if self.attempt.without_derived:
            return (
                f"Your first result is that of {self.mistake.name}.",
                f"{self.mistake.diagnosis} (Look at the second once the first is right.)",
            )
        turned = ", with the sign flipped as well" if self.attempt.negated else ""
        return f"{subject} are those of {self.mistake.name}{turned}.", self.mistake.diagnosis

    def _list(self) -> tuple[str, ...]:
        """What is wrong, line by line."""
        result = "first result is" if self.attempt.without_derived else "numbers are"
        many = {2: "two", 3: "three"}[len(self.several)]
        wrong = [f"{WRONG}{begun(part.name)}. {part.diagnosis}" for part in self.several]
        return f"Your {result} what {many} mistakes together give.", *wrong


def begun(words: str) -> str:
    """With a capital, unless a symbol or a name of letters and digits begins it."""
    begins_a_word = words[:2].isascii() and words[:2].replace(" ", "").isalpha()
    return words[:1].upper() + words[1:] if begins_a_word else words


def find_mistake(exam, failed: FailedCheck) -> Named | None:
    """The declared mistake that reproduces the answer, or None.

    Cases that crash or give NaN may be ignored: a wrong mean is one fault, the division by zero in
    its empty row is another.
    """
    for attempt in attempts(failed):
        trial = Trial(exam, failed, attempt)
        found = []
        for named in map(trial.named, filter(trial.explains, exam.exercise.mistakes)):
            if named.everywhere:
                return named
            found.append(named)
        if several := find_several(trial):
            return Named(together(several), True, attempt, several)
        found = [named for named in found if not trial.is_weak(named.mistake)]
        if found and all(trial.agree(found[0], other) for other in found):
            return found[0]
    return None


def find_half(exam, failed: FailedCheck) -> tuple[Mistake, frozenset[int]] | None:
    """The declared mistake that an answer has made on some failing cases, and which these are;
    None where it could be another one, or where the answer is right and the mistake is not."""
    attempt = Attempt(failed.failing, numbers_only=True)
    trial, found = Trial(exam, failed, attempt), dict[Mistake, frozenset[int]]()
    step = max(1, (len(failed.failing) - 1) // (PROBES - 1))
    probes = [] if failed.is_told_by_errors else failed.failing[::step]
    for mistake in exam.exercise.mistakes:
        if not any(trial.reproduces(mistake, i) for i in probes):
            continue
        explained = frozenset(i for i in failed.failing if trial.reproduces(mistake, i))
        telling = [i for i in explained if trial.is_apart_from_right(mistake, i)]
        enough = len(telling) >= ENOUGH and 3 * len(explained) >= len(failed.failing)
        if enough and trial.is_everywhere(mistake):
            found[mistake] = explained
    for mistake, explained in found.items():
        if all(other <= explained for other in found.values()):
            alike = [m for m, other in found.items() if other == explained]
            cases = range(len(failed.cases))
            if not any(trial.apart(m, mistake, i) for m in alike for i in cases):
                return mistake, explained
    return None


def is_true_of(named: Named, exam, failed: FailedCheck) -> bool:
    """Whether what was found on one drawing of the cases explains the answer on another, too."""
    alike = [attempt for attempt in attempts(failed) if attempt.is_like(named.attempt)]
    trials = [Trial(exam, failed, attempt) for attempt in alike]
    return not failed.failing or any(trial.reproduces_all(named.mistake) for trial in trials)


def attempts(failed: FailedCheck) -> Iterator[Attempt]:
    broken = frozenset(i for i in failed.wrong if failed.is_broken(i))
    telling = [i for i in failed.wrong if i not in broken]
    yield Attempt(failed.failing)
    if sum(failed.outcomes[i].error is not None for i in broken) > len(telling):
        return  # an answer that crashes nearly everywhere is described by its error
    if telling:
        yield Attempt(telling, broken, numbers_only=True)
    if len(telling) >= ENOUGH:
        yield Attempt(telling, broken, numbers_only=True, negated=True)
    derived = failed.exercise.derived
    first_wrong = [i for i in telling if any(_is_first(d, derived) for d in failed.differences[i])]
    if derived and first_wrong:
        yield Attempt(first_wrong, broken, numbers_only=True, without_derived=True)


@dataclass(frozen=True)
class Trial:
    """An answer held against declared mistakes, as one attempt wants it."""

    exam: Any  # an Exam; its module imports this one
    failed: FailedCheck
    attempt: Attempt

    def is_weak(self, mistake: Mistake) -> bool:
        """Whether a mistake that is not the answer's on *every* case would be a guess."""
        crashes = any(self.failed.outcomes[i].error for i in self.attempt.failing)
        telling, against = len(self.telling(mistake)), self._against(mistake)
        return crashes or self.attempt.negated or telling < ENOUGH or telling <= against

    def named(self, mistake: Mistake) -> Named:
        return Named(mistake, self.is_everywhere(mistake), self.attempt)

    def seen(self) -> list[int]:
        """The cases that count; those that fail, which tell the most, come first."""
        others = set(range(len(self.failed.cases))) - {*self.attempt.failing, *self.attempt.aside}
        return [*self.attempt.failing, *sorted(others)]

    def apart(self, one: Mistake, other: Mistake, i: int) -> list[Difference]:
        """Where two mistakes differ on a case."""
        theirs, others = (self.exam.outcome_of(m, i, self._repeat) for m in (one, other))
        return list(filter(self._counts, self._compare(compare_anything, theirs, others, i, other)))

    def is_everywhere(self, mistake: Mistake) -> bool:
        """Whether it gives the answer's numbers where these are right, too."""
        return all(self.reproduces(mistake, i) for i in self._right())

    def _against(self, mistake: Mistake) -> int:
        """On how many cases the answer is right and the mistake would not be."""
        return sum(not self.reproduces(mistake, i) for i in self._right())

    def _right(self) -> Iterator[int]:
        explained = self.attempt.aside.union(self.attempt.failing)
        return (i for i in range(len(self.failed.cases)) if i not in explained)

    def explains(self, mistake: Mistake) -> bool:
        """Whether it reproduces every failing case, and enough of them to be no coincidence."""
        return self.reproduces_all(mistake) and len(self.telling(mistake)) >= self._needed(mistake)

    def reproduces_all(self, mistake: Mistake) -> bool:
        """Whether it gives the answer's numbers on every failing case."""
        return all(self.reproduces(mistake, i) for i in self.attempt.failing)

    def telling(self, mistake: Mistake) -> set[int]:
        """Failing cases on which the mistake's numbers are not those of the right answer.

        A case that comes again with constants that require gradient says nothing new about
        numbers.
        """
        again = {i for i, case in enumerate(self.failed.cases) if case.constants}
        apart = [i for i in self.attempt.failing if self.is_apart_from_right(mistake, i)]
        return set(apart) - again or set(apart)

    def _needed(self, mistake: Mistake) -> int:
        """A leak, a changed argument or a wrong dtype is certain from one case."""
        kinds = {d.kind for i in self.attempt.failing for d in self.failed.differences[i]}
        return 1 if kinds <= set(BESIDES) else mistake.telling

    def is_apart_from_right(self, mistake: Mistake, i: int) -> bool:
        """Whether the case tells the mistake from a right answer."""
        theirs = self.exam.outcome_of(mistake, i, self._repeat)
        return self._differs(self.exam.expected[i], theirs, i, mistake)

    def agree(self, one: Named, other: Named) -> bool:
        """Whether two mistakes give the same on every case, so that it does not matter which."""

        cases = range(len(self.failed.cases))
        return not any(self.apart(other.mistake, one.mistake, i) for i in cases)

    def reproduces(self, mistake: Mistake, i: int) -> bool:
        """Whether it gives the answer's numbers on this case."""
        theirs = self.exam.outcome_of(mistake, i, self._repeat)
        theirs = negative(theirs) if self.attempt.negated else theirs
        return not self._differs(theirs, self.failed.outcomes[i], i, mistake)

    def _differs(self, expected, actual, i: int, mistake: Mistake) -> bool:
        return self._compare(is_apart, expected, actual, i, mistake, self._counts)

    def _compare(self, how: Callable, expected, actual, i: int, mistake: Mistake, *more) -> Any:
        case = self.failed.cases[i]
        case = replace(case, atol=mistake.atol) if mistake.atol is not None else case
        return how(expected, actual, case, self.exam.exercise.observe, *more)

    def _counts(self, difference: Difference) -> bool:
        """Whether the attempt does not ignore it."""
        if self.attempt.without_derived:
            return _is_first(difference, self.exam.exercise.derived)
        return not (difference.kind in BESIDES and self.attempt.numbers_only)

    @property
    def _repeat(self) -> bool:
        return any(outcome.repeatable is False for outcome in self.failed.outcomes)


def _is_first(difference: Difference, derived: tuple[str, ...]) -> bool:
    """Whether a difference is in a part of the result that does not follow from another."""
    return difference.kind not in BESIDES and difference.name not in derived
