"""The judge's side of a contest: one trial of a trainer, and the verdict on it."""

import builtins
import random
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

from rlcourse.checks.asking.calling import Facts, Failure, Outcome, call_all
from rlcourse.checks.asking.case import Case
from rlcourse.checks.exercise import Exercise
from rlcourse.checks.judging import testing
from rlcourse.checks.judging.contest import (
    Contest,
    Measured,
    Sitting,
    World,
    credit,
    measure,
)
from rlcourse.checks.telling.result import Result
from rlcourse.policy.trainee import SPENT, Holder

Limit = Callable[[], AbstractContextManager]  # of the seconds that a trainer may take

TURNED = "a step that makes right answers less likely"
LOWERED = "Its first step made right answers less likely than before: look at the loss's sign."
IDLE = "weights that no step has changed"
OVERSPENT = "more completions than the budget has"
BROKEN = "weights that are no numbers any more"
FALL = 0.15  # of the reward, from its best tenth to its last one


@dataclass(frozen=True)
class Trial:
    """A trainer's exercise on one variant; 0 is the public one."""

    exercise: Exercise
    variant: int = 0

    @property
    def contest(self) -> Contest:
        assert self.exercise.contest is not None
        return self.exercise.contest

    @property
    def hidden(self) -> bool:
        return self.variant != 0

    @cached_property
    def world(self) -> World:
        return self.contest.world(self.variant)

    @cached_property
    def _number(self) -> int:
        return self._chance("number")

    def _chance(self, what: str) -> int:
        """A number that says nothing of the variant."""
        return random.Random(f"{what}:{self.variant}").randrange(testing.LARGEST_NUMBER)

    @cached_property
    def case(self) -> Case:
        return self.contest.case(self.world, self._number, seed=self._chance("seed") % 1_000)

    def holder(self, completions: int | None = None) -> Holder:
        """A fresh policy, and a fresh count."""
        return self.contest.holder(self.world, completions, self._chance("answers"))

    def sitting(self) -> Sitting:
        """What answers the calls of one sitting, in a graded run."""
        return Sitting(self.holder(), self.case)

    def run(
        self, fn: Callable, completions: int | None = None, within: Limit = nullcontext
    ) -> tuple[Outcome, Holder]:
        """Call a trainer in this process; `within` bounds the time of the call alone."""
        holder = self.holder(completions)
        testing.known_as(self._number, holder)
        case = replace(self.case, arguments={**self.case.arguments, "completions": holder.budget})
        with within():
            return call_all(fn, (case,), repeat=False)[0], holder

    def examine(self, facts: Facts, fn: Callable, within: Limit = nullcontext) -> Result:
        """Run a trainer in this process and judge it."""
        return self.judge(facts, *self.run(fn, within=within))

    def judge(self, facts: Facts, outcome: Outcome, holder: Holder | None) -> Result:
        """The verdict, with what was measured."""
        holder = holder or self.holder()
        error = outcome.error
        if error and error.type == "NotImplementedError" and error.function in ("", facts.name):
            return self._result(unwritten=True)
        if error:
            spent = holder.refused and SPENT[:10] in error.message
            name = OVERSPENT if spent else BROKEN if holder.broken else None
            sentences = (_overspent(holder),) if spent else self._failed(error)
            said = ("Its gradient is infinite or NaN.",) if name == BROKEN else ()
            sentences = said + sentences
            return self._result(mistake=name, sentences=sentences, told="no policy to measure")
        found = measure(self.contest, self.world, holder, self._chance("measure"))
        if found.fault:
            idle = found.fault.startswith("The weights are as they were")
            return self._result(
                mistake=IDLE if idle else BROKEN,
                sentences=(found.fault,),
                told=f"no trained policy; {_used(found)}",
                measured=found,
            )
        share = credit(self.contest, found)
        low, high = found.interval
        told = (
            f"accuracy {found.accuracy:.2f} [{low:.2f}, {high:.2f}], greedy "
            f"{found.greedy_accuracy:.2f}, before training {found.start:.2f}; {_used(found)}"
        )
        if share == 1:
            return self._result(share=1.0, told=told, measured=found)
        said, turned = _shown(found, self.contest, holder.turned), holder.turned
        levels = " and ".join(f"{level:.2f}" for level, _ in self.contest.levels)
        said.append(
            f"Points begin where the lower end of the interval exceeds {found.floor:.2f}, the most "
            f"that can be had without learning from rewards; the levels are {levels}.",
        )
        name = TURNED if turned else None
        return self._result(
            share=share, mistake=name, sentences=tuple(said), told=told, measured=found
        )

    def _failed(self, error: Failure) -> tuple[str, ...]:
        """How it ended. On a hidden variant nothing is shown that may hold what was seen there."""
        known = isinstance(getattr(builtins, error.type, None), type)
        kind = error.type if known or not self.hidden else "an exception"
        words = "" if self.hidden else f": {error.message[:300]}"
        where = f", in your line {error.line_number}" if error.line else ""
        where += f": `{error.line[:100]}`" if where and not self.hidden else ""
        if error.type in ("TimeoutError", "TookTooLong"):
            return (f"It took more than {self.contest.seconds:g} seconds of a processor.",)
        return (f"It ended in {kind}{words}{where}.",)

    def _result(self, share=0.0, **found: Any) -> Result:
        passed = share == 1
        return Result.on(
            self.exercise, passed=passed, score=share, agreeing=int(passed), cases=1, **found
        )


def _used(found: Measured) -> str:
    """What the run took, in the local check as in grading."""
    return (
        f"{found.completions:,} completions of {found.questions:,} questions drawn and rewarded, "
        f"{found.steps:,} steps"
    )


def _overspent(holder: Holder) -> str:
    return (
        f"It asked for more than its {holder.budget:,} completions: after {len(holder.asked):,} "
        "the next batch no longer fitted. Stop while a whole batch is left."
    )


def _shown(found: Measured, contest: Contest, turned: bool) -> list[str]:
    """What the numbers of this run show, in sentences."""
    said = [LOWERED] if turned else []
    if found.rewards and max(found.rewards) - found.rewards[-1] > FALL:
        best, last = max(found.rewards), found.rewards[-1]
        said.append(
            f"The reward reached {best:.2f} in its best tenth and was {last:.2f} in its last one: "
            "smaller steps may keep it."
        )
    if found.completions < contest.completions / 2:
        said.append(
            f"It used {found.completions:,} of {contest.completions:,} completions: "
            "the others were free."
        )
    if found.unread > 0.5:
        said.append(f"{found.unread:.0%} of its greedy answers have no line “#### N”.")
    return said
