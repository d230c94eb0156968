"""The judge's side of a check: the cases, the right answers, and which mistake was made.

An ``Exam`` hands out its cases, takes outcomes back and returns a result. It never calls the
student's function, and it can judge many students: references and mistakes run once.
"""

from functools import cached_property

from rlcourse.checks.calling import Case, Facts, Outcome, call_all, one_thread
from rlcourse.checks.comparing import Difference, compare
from rlcourse.checks.diagnose import FailedCheck, besides, diagnose, diagnose_broken
from rlcourse.checks.exercise import Exercise, Mistake
from rlcourse.checks.naming import find_mistake
from rlcourse.checks.result import Example, Result

PARTIAL_CREDIT = 0.5  # at most, for a function that agrees on some cases only
ALMOST_CREDIT = 0.8  # at least, for one that is right on all but cases at the edge


def judge(exercise: Exercise, case: Case, expected: Outcome, outcome: Outcome) -> list[Difference]:
    """Where one outcome differs from the expected one; the list is empty when it agrees."""
    return compare(expected, outcome, case, exercise.observe)


class Exam:
    """One drawing of an exercise's cases, with everything needed to judge outcomes on them."""

    def __init__(self, exercise: Exercise, seed: int | None = None, hidden: bool = False):
        self.exercise = exercise
        self.hidden = hidden
        with one_thread():
            self.cases = exercise.draw_cases(seed, hidden)
        self._of_mistake: dict[tuple[str, int, bool], Outcome] = {}

    @cached_property
    def expected(self) -> list[Outcome]:
        """What the reference does."""
        return call_all(self.exercise.reference, self.cases, repeat=False)

    def outcome_of(self, mistake: Mistake, i: int, repeat: bool = False) -> Outcome:
        """What a declared mistake does on case i; computed once."""
        key = mistake.name, i, repeat
        if key not in self._of_mistake:
            only = call_all(mistake.implementation, self.cases[i : i + 1], repeat)
            self._of_mistake[key] = only[0]
        return self._of_mistake[key]

    def examine(self, facts: Facts, outcomes: list[Outcome]) -> FailedCheck:
        """How the outcomes differ from the right ones, if they do."""
        differences = [
            judge(self.exercise, *triple)
            for triple in zip(self.cases, self.expected, outcomes, strict=True)
        ]
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
        named, at = find_mistake(self, failed), None
        if named:
            sentences = [*named.sentences(), *diagnose_broken(failed, named.attempt.aside)]
            if named.attempt.numbers_only:
                sentences += besides(failed)
        else:
            sentences, at = diagnose(failed)
        return self._result(
            outcomes,
            failing,
            mistake=named.mistake.name if named else None,
            sentences=tuple(sentences),
            example=None if self.hidden else Example.of(failed, at),
        )

    def _edges(self, failing: list[int]) -> tuple[str, ...]:
        """The failing cases in words, if all of them lie at the edge."""
        cases = [self.cases[i] for i in failing]
        return tuple(case.label for case in cases) if all(c.edge for c in cases) else ()

    def _partial_credit(self, failing: list[int]) -> float:
        if self._edges(failing):
            at_the_edge = sum(case.edge for case in self.cases)
            return ALMOST_CREDIT + (1 - ALMOST_CREDIT) * (1 - len(failing) / at_the_edge)
        return PARTIAL_CREDIT * (1 - len(failing) / len(self.cases))

    def _result(self, outcomes, failing, passed=False, unwritten=False, **found) -> Result:
        agreeing = len(outcomes) - len(failing)
        spoken = next((o.printed for o in outcomes if o.printed), "")
        warned = next((o.warnings[0] for o in outcomes if o.warnings), "")
        return Result(
            exercise=self.exercise.name,
            lesson=self.exercise.lesson,
            section=self.exercise.section,
            passed=passed,
            unwritten=unwritten,
            score=1.0 if passed else 0.0 if unwritten else self._partial_credit(failing),
            edges=self._edges(failing),
            max_points=float(self.exercise.points),
            agreeing=agreeing,
            cases=len(outcomes),
            minutes=self.exercise.minutes,
            first_hint=self.exercise.hints[0],
            printed="" if self.hidden else spoken,
            warning="" if self.hidden else warned,
            **found,
        )


def _is_unwritten(facts: Facts, outcomes: list[Outcome]) -> bool:
    """Every call ends in NotImplementedError, raised by the function itself."""
    return all(
        o.error and o.error.type == "NotImplementedError" and o.error.function in ("", facts.name)
        for o in outcomes
    )
