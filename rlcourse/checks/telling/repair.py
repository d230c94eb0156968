"""The line of a wrong function in which one change makes every case agree.

One change of the student's own code after another is tried (``changes``), the likeliest first.
Their number is fixed, so that what is said does not depend on how fast the machine is. A line is
told only if all repairs that are equally likely lie on it; the change itself is not told.
"""

from collections.abc import Callable, Collection
from dataclasses import dataclass, replace

import torch

from rlcourse.checks.asking.calling import call, call_all, describe, one_thread
from rlcourse.checks.judging.exam import Exam, judge
from rlcourse.checks.telling.changes import LEAST_LIKELY
from rlcourse.checks.telling.diagnose import DIFFER, IMPOSSIBLE
from rlcourse.checks.telling.result import Result
from rlcourse.checks.telling.rewriting import Source
from rlcourse.checks.telling.show import size_of

MOST = 250  # changes that are tried


@dataclass(frozen=True)
class Repair:
    """One line of the student's, and how many of the cases agree after one change in it."""

    function: str
    line_number: int  # in its cell or file
    line: str
    cases: int
    half: str = ""  # the mistake that is left

    @property
    def sentence(self) -> str:
        where = f"line {self.line_number} of {self.function}: `{self.line}`"
        agree = f"all {self.cases} cases agree"
        if self.half:
            agree = f"only {self.half} is left"
        return f"With one change in one line, {agree}. Look at {where}."


def with_repair(result: Result, exam: Exam, fn: Callable, others: Collection[str]) -> Result:
    """The result of a failed check, with the line in which one change repairs `fn`."""
    told = result.mistake or any(said.startswith(IMPOSSIBLE) for said in result.sentences)
    if result.passed or result.unwritten or told or exam.hidden:
        return result
    found = repair(fn, exam, others, result.half)
    if found is None:
        return result
    said = (sentence for sentence in result.sentences if sentence != DIFFER)
    return replace(result, sentences=(*said, found.sentence))


def repair(
    fn: Callable, exam: Exam, others: Collection[str] = (), half: str | None = None
) -> Repair | None:
    """The only line of `fn`, or of a helper that it calls, in which some change repairs it, or
    leaves of two mistakes the declared one that is called `half`.

    Functions whose names are in `others` have checks of their own, and are not changed.
    """
    if exam.exercise.suspects or exam.exercise.observe:
        return None
    try:
        source = Source(fn, others)
    except ValueError:
        return None
    with torch.random.fork_rng(devices=[]), one_thread():
        found = _search(_Trial(source, exam.with_mistake(half) if half else exam))
    return replace(found, half=half or "") if found else None


def _search(trial: "_Trial") -> Repair | None:
    source, exam = trial.source, trial.exam
    if not trial.failing:
        return None  # what is wrong is outside of the text, such as a decorator
    found: set[Repair] = set()
    best = LEAST_LIKELY
    for number, change in source.changes(exam.cases[trial.order[0]])[:MOST]:
        if change.rank > best or len(found) > 1:
            break
        function = source.changed(number, change)
        if function and trial.agrees(function):
            best = change.rank
            name, place = source.functions[number].__name__, source.line(number, change)
            found.add(Repair(name, *place, len(exam.cases)))
    return found.pop() if len(found) == 1 else None  # of two lines either could be meant


class _Trial:
    """Changed functions on the cases, first on the one that tells the most for the least."""

    def __init__(self, source: Source, exam: Exam):
        self.source, self.exam = source, exam
        self.bare = [
            replace(case, differentiable=(), constants=(), tracked=False) for case in exam.cases
        ]
        function, sizes = source.plain(), [size_of(case.arguments) for case in exam.cases]
        self.failing = [i for i in range(len(sizes)) if function and self._differs(i, function)]
        self.order = sorted(range(len(sizes)), key=lambda i: (i not in self.failing, sizes[i]))

    def agrees(self, function: Callable) -> bool:
        """Whether all cases agree; one that tells a change wrong is asked early from then on."""
        for k, i in enumerate(self.order):
            if self._differs(i, function):
                if k > 1:
                    self.order.insert(1, self.order.pop(k))
                return False
        outcomes = call_all(function, self.exam.cases)  # twice on each case, as in a check
        return not self.exam.examine(describe(self.source.fn), outcomes).failing

    def _differs(self, i: int, function: Callable) -> bool:
        """Whether a case fails; first without gradients, which take most of the time."""
        case, expected = self.exam.cases[i], self.exam.expected[i]
        for asked in (self.bare[i], case) if case.tracked else (case,):
            outcome = call(function, asked).in_training(asked)
            if judge(self.exam.exercise, asked, expected, outcome):
                return True
        return False
