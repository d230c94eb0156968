"""The judge's side of a check: the cases, the right answers, and which mistake was made.

An ``Exam`` hands out its cases, takes outcomes back and returns a result. It never calls the
student's function, and it can judge many students: references and mistakes run once.
"""

from copy import copy
from functools import cached_property, lru_cache
from itertools import combinations
from typing import Any

from rlcourse.checks.asking.calling import Facts, Outcome, call_all, identical, one_thread
from rlcourse.checks.asking.case import Case
from rlcourse.checks.asking.specs import Spec
from rlcourse.checks.exercise import Exercise, Mistake
from rlcourse.checks.judging import testing
from rlcourse.checks.judging.comparing import Difference, compare_anything
from rlcourse.checks.judging.failed import FailedCheck
from rlcourse.checks.judging.naming import find_half, find_mistake
from rlcourse.checks.judging.partial_credit import missed_edges, partial_credit
from rlcourse.checks.judging.several import results_of_several
from rlcourse.checks.telling.diagnose import (
    besides,
    diagnose,
    diagnose_broken,
    diagnose_rest,
    last_resort,
    place_of,
)
from rlcourse.checks.telling.result import Example, Result

KEPT = 3  # cases for which all ways to make several mistakes are remembered
OTHER_SEED = 271  # of cases that no answer is asked


def judge(exercise: Exercise, case: Case, expected: Outcome, outcome: Outcome) -> list[Difference]:
    """Where one outcome differs from the expected one; the list is empty when it agrees."""
    expected, outcome = (_seen(exercise, [o])[0] for o in (expected, outcome))
    return compare_anything(expected, outcome, case, exercise.observe)


def _seen(exercise: Exercise, outcomes: list[Outcome]) -> list[Outcome]:
    """The outcomes; of tests that a student wrote, only whether they accept or reject."""
    return [testing.verdict(o) for o in outcomes] if exercise.suspects else outcomes


class Exam:
    """One drawing of an exercise's cases, with everything needed to judge outcomes on them."""

    def __init__(self, exercise: Exercise, seed: int | None = None, hidden: bool = False):
        self.exercise = exercise
        self.hidden = hidden
        with one_thread():
            self.cases = exercise.draw_cases(seed, hidden)
        self._of_mistake: dict[tuple[Mistake, int, bool], Outcome] = {}
        # What two or three declared mistakes at once give on a case: hundreds of results, kept for
        # the next answer, since nearly all need the same case.
        self.of_several = lru_cache(KEPT)(lambda i: results_of_several(exercise, self.cases[i]))

    @cached_property
    def expected(self) -> list[Outcome]:
        """What the reference does."""
        outcomes = call_all(self.exercise.reference, self.cases, repeat=False)
        return _seen(self.exercise, outcomes)

    def outcome_of(self, mistake: Mistake, i: int, repeat: bool = False) -> Outcome:
        """What a mistake does on case i; computed once."""
        key = mistake, i, repeat
        if key not in self._of_mistake:
            only = call_all(mistake.implementation, self.cases[i : i + 1], repeat)
            self._of_mistake[key] = _seen(self.exercise, only)[0]
        return self._of_mistake[key]

    def with_mistake(self, name: str) -> "Exam":
        """The same cases, on which what a declared mistake does is held for right."""
        exam, cases = copy(self), range(len(self.cases))
        mistake = next(m for m in self.exercise.mistakes if m.name == name)
        exam.expected = [self.outcome_of(mistake, i) for i in cases]
        return exam

    @cached_property
    def other_drawing(self) -> "Exam":
        """The exercise's cases drawn once more, always the same, larger ones."""
        return Exam(self.exercise, OTHER_SEED, hidden=True)

    def same(self, one: Mistake, other: Mistake) -> bool:
        """Whether two mistakes give the same on every case."""
        return not any(
            judge(self.exercise, case, self.outcome_of(one, i), self.outcome_of(other, i))
            for i, case in enumerate(self.cases)
        )

    def known_outcomes(self) -> list[tuple[str, int, bool]]:
        """Which results of declared mistakes have been computed: (name, case, repeated)."""
        declared = set(self.exercise.mistakes)
        return [(m.name, i, repeat) for m, i, repeat in self._of_mistake if m in declared]

    @one_thread()
    def know_outcome(self, name: str, i: int, repeat: bool) -> None:
        """Compute one of them in advance."""
        for mistake in self.exercise.mistakes:
            if mistake.name == name:
                self.outcome_of(mistake, i, repeat)

    def examine(self, facts: Facts, outcomes: list[Outcome]) -> FailedCheck:
        """How the outcomes differ from the right ones, if they do."""
        met = [o.in_training(case) for o, case in zip(outcomes, self.cases, strict=True)]
        outcomes = _seen(self.exercise, met)
        differences = [
            judge(self.exercise, *triple)
            for triple in zip(self.cases, self.expected, outcomes, strict=True)
        ]
        for i in self._drawn_again(outcomes):
            differences[i].append(Difference("unvaried"))
        return FailedCheck(
            self.exercise, facts, self.cases, self.expected, outcomes, differences, self.hidden
        )

    @one_thread()
    def judge(self, facts: Facts, outcomes: list[Outcome]) -> Result:
        """The verdict on a function from its outcomes on all the cases, in order."""
        failed = self.examine(facts, outcomes)
        failing = failed.failing
        if not failing:
            return self._result(outcomes, failing, passed=True)
        if _is_unwritten(facts, outcomes):
            return self._result(outcomes, failing, unwritten=True)
        edges = missed_edges(failed)
        told = {"credit": partial_credit(failed, edges), "edges": edges}
        try:
            found = self._explained(failed, outcomes)
            result = self._result(outcomes, failing, **told, **found)
            str(result)  # if it cannot be shown, fall back below
            return result
        except Exception as error:
            sentences = tuple(last_resort(failed, error))
            return self._result(outcomes, failing, **told, sentences=sentences)

    def _explained(self, failed: FailedCheck, outcomes: list[Outcome]) -> dict[str, Any]:
        """The mistake by its name, the sentences, and the case to show."""
        named, at, place, half = find_mistake(self, failed), None, None, None
        if suspects := self.exercise.suspects:
            named = named if named and named.everywhere else None
            sentences = testing.explain(suspects, self.cases, outcomes, failed.failing, self.hidden)
            if named:
                words = f"It catches no more than {named.mistake.name} does."
                sentences.append(f"{words} {named.mistake.diagnosis}")
        elif named:
            sentences = [*named.sentences(), *diagnose_broken(failed, named.attempt.aside)]
            if named.attempt.numbers_only:
                sentences += besides(failed)
        elif found := find_half(self, failed):
            half, explained = found
            sentences, at = diagnose_rest(failed, half, explained)
        else:
            sentences, at = diagnose(failed)
            place = place_of(failed, sentences)
        return {
            "mistake": named.mistake.name if named else None,
            "half": half.name if half else None,
            "sentences": tuple(sentences),
            "place": place,
            "example": None if self.hidden or suspects else Example.of(failed, at),
        }

    @cached_property
    def _twins(self) -> list[tuple[int, int]]:
        """Pairs of cases that differ in nothing but the seed of a generator."""
        seeded = [i for i, c in enumerate(self.cases) if _seed_of(c) is not None]
        return [
            (i, j)
            for i, j in combinations(seeded, 2)
            if _seed_of(self.cases[i]) != _seed_of(self.cases[j])
            and _alike(self.cases[i], self.cases[j])
        ]

    def _drawn_again(self, outcomes: list[Outcome]) -> list[int]:
        """Cases in which another seed has made no difference."""
        return [
            j
            for i, j in self._twins
            if not (outcomes[i].error or outcomes[j].error)
            and identical(outcomes[i].value, outcomes[j].value)
        ]

    def _result(self, outcomes, failing, passed=False, unwritten=False, credit=0.0, **found):
        agreeing = len(outcomes) - len(failing)
        spoken = next((o.printed for o in outcomes if o.printed), "")
        warned = next((o.warnings[0] for o in outcomes if o.warnings), "")
        return Result.on(
            self.exercise,
            passed=passed,
            unwritten=unwritten,
            score=1.0 if passed else 0.0 if unwritten else credit,
            agreeing=agreeing,
            cases=len(outcomes),
            printed="" if self.hidden else spoken,
            warning="" if self.hidden else warned,
            **found,
        )


def _seed_of(case: Case) -> int | None:
    generator = case.arguments.get("generator")
    return generator.options.get("seed") if isinstance(generator, Spec) else None


def _alike(a: Case, b: Case) -> bool:
    """Whether two cases have the same arguments, generators left aside."""
    return a.arguments.keys() == b.arguments.keys() and all(
        name == "generator" or identical(value, b.arguments[name])
        for name, value in a.arguments.items()
    )


def _is_unwritten(facts: Facts, outcomes: list[Outcome]) -> bool:
    """Every call ends in NotImplementedError, raised by the function itself."""
    return all(
        o.error and o.error.type == "NotImplementedError" and o.error.function in ("", facts.name)
        for o in outcomes
    )
