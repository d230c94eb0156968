"""The judge's side of a check: the cases, the right answers, and which mistake was made.

An ``Exam`` hands out its cases, takes outcomes back and returns a result. It never calls the
student's function, and it can judge many students: references and mistakes run once.
"""

from functools import cached_property

from rlcourse.exercises.calling import Case, Facts, Outcome, call_all
from rlcourse.exercises.comparing import Difference, compare
from rlcourse.exercises.diagnose import Situation, diagnose
from rlcourse.exercises.exercise import Exercise, Mistake
from rlcourse.exercises.result import Example, Result

PARTIAL_CREDIT = 0.5  # at most, for a function that agrees on some cases only


def judge(exercise: Exercise, case: Case, expected: Outcome, outcome: Outcome) -> list[Difference]:
    """Where one outcome differs from the expected one; the list is empty when it agrees."""
    return compare(expected, outcome, case, exercise.observe)


class Exam:
    """One drawing of an exercise's cases, with everything needed to judge outcomes on them."""

    def __init__(self, exercise: Exercise, seed: int | None = None, hidden: bool = False):
        self.exercise = exercise
        self.hidden = hidden
        self.cases = exercise.draw_cases(seed, hidden)
        self._of_mistake: dict[tuple[str, bool], list[Outcome]] = {}

    @cached_property
    def expected(self) -> list[Outcome]:
        """What the reference does."""
        return call_all(self.exercise.reference, self.cases, repeat=False)

    def outcomes_of(self, mistake: Mistake, repeat: bool = False) -> list[Outcome]:
        """What a declared mistake does; computed once."""
        key = mistake.name, repeat
        if key not in self._of_mistake:
            self._of_mistake[key] = call_all(mistake.implementation, self.cases, repeat)
        return self._of_mistake[key]

    def judge(self, facts: Facts, outcomes: list[Outcome]) -> Result:
        """The verdict on a function from its outcomes on all the cases, in order."""
        differences = [
            judge(self.exercise, *triple)
            for triple in zip(self.cases, self.expected, outcomes, strict=True)
        ]
        failing = [i for i, found in enumerate(differences) if found]
        if not failing:
            return self._result(outcomes, failing, passed=True)
        if _is_unwritten(facts, outcomes):
            return self._result(outcomes, failing, unwritten=True)
        situation = Situation(
            self.exercise, facts, self.cases, self.expected, outcomes, differences, self.hidden
        )
        mistake, everywhere = self._mistake_made(outcomes, failing)
        if mistake:
            where = "Your numbers" if everywhere else "Where they differ, your numbers"
            sentences = (f"{where} are those of {mistake.name}.", mistake.diagnosis)
        else:
            sentences = tuple(diagnose(situation))
        return self._result(
            outcomes,
            failing,
            mistake=mistake.name if mistake else None,
            sentences=sentences,
            example=None if self.hidden else Example.smallest(situation),
        )

    def _mistake_made(self, outcomes, failing) -> tuple[Mistake | None, bool]:
        """The mistake that reproduces every outcome; failing that, every one that is wrong."""
        repeat = not all(outcome.repeatable for outcome in outcomes)
        partial = None
        for mistake in self.exercise.mistakes:
            theirs = self.outcomes_of(mistake, repeat)
            agrees = {
                i
                for i, triple in enumerate(zip(self.cases, theirs, outcomes, strict=True))
                if not judge(self.exercise, *triple)
            }
            if len(agrees) == len(outcomes):
                return mistake, True
            if agrees.issuperset(failing) and _is_telling(outcomes, failing):
                partial = partial or mistake
        return partial, False

    def _result(self, outcomes, failing, passed=False, unwritten=False, **found) -> Result:
        agreeing = len(outcomes) - len(failing)
        share = agreeing / len(outcomes)
        spoken = next((o.printed for o in outcomes if o.printed), "")
        warned = next((o.warnings[0] for o in outcomes if o.warnings), "")
        return Result(
            exercise=self.exercise.name,
            lesson=self.exercise.lesson,
            section=self.exercise.section,
            passed=passed,
            unwritten=unwritten,
            score=1.0 if passed else 0.0 if unwritten else PARTIAL_CREDIT * share,
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


def _is_telling(outcomes: list[Outcome], failing: list[int]) -> bool:
    """Whether to agree on the failing cases alone says anything: two crashes say little."""
    return not any(outcomes[i].error for i in failing)
