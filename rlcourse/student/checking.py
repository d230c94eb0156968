"""What a lesson calls: ``check`` and ``ready``."""

import os
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from rlcourse import exercises
from rlcourse.checks.asking.borrowed import Borrowing, replaced
from rlcourse.checks.asking.calling import call, call_all, describe, written
from rlcourse.checks.asking.names import free_names, unread_definition
from rlcourse.checks.exercise import Exercise
from rlcourse.checks.judging.exam import Exam
from rlcourse.checks.judging.follow_through import UNDEFINED, counting, replaceable
from rlcourse.checks.judging.trial import Trial
from rlcourse.checks.telling.evidence import with_evidence
from rlcourse.checks.telling.repair import with_repair
from rlcourse.checks.telling.result import CheckFailed, Result
from rlcourse.courses import current, outputs
from rlcourse.errors import UserError
from rlcourse.student import record
from rlcourse.student.display import notebook, show
from rlcourse.student.patience import TookTooLong, patience


def check(
    fn: Callable,
    exercise: str | Exercise | None = None,
    seed: int | None = None,
    hidden: bool = False,
) -> Result:
    """Compare `fn` with the reference on fresh cases; the exercise is found by its name.

    If it fails and uses functions of its lesson that fail, too, it is judged once more with right
    ones in their place. With `hidden` the cases are larger and the message contains none of their
    numbers. Under nbgrader's Validate, a failed check raises ``CheckFailed``.
    """
    found = exercise_of(fn, exercise)
    result = _try_out(fn, found) if found.contest else _compare(fn, Exam(found, seed, hidden))
    if (shell := notebook()) and (said := unread_definition(fn, shell)):
        result = replace(result, sentences=(said, *result.sentences))
    execution = os.environ.get("NBGRADER_EXECUTION")
    if not hidden and execution is None:
        record.save(result)
    if hidden and execution == "autograde":
        show(result)  # the cell's own output is the number of points
    if execution == "validate" and not result.passed:
        raise CheckFailed(result)
    return result


def _compare(fn: Callable, exam: Exam) -> Result:
    result = _examine(fn, exam)
    if result.passed or result.borrowed:
        return result
    return _once_more(fn, exam, result)


def _try_out(fn: Callable, exercise: Exercise) -> Result:
    """Let a trainer train, on the public variant and with its whole budget; and measure."""
    trial = Trial(exercise)
    within = partial(patience, trial.contest.seconds)
    with _borrowing(fn, exercise) as borrowing:
        result = trial.examine(describe(fn), fn, within)
    return result.as_borrowed(borrowing.found) if borrowing.found else result


def _examine(fn: Callable, exam: Exam) -> Result:
    with patience():
        outcomes = call_all(fn, exam.cases)
        with _borrowing(fn, exam.exercise) as borrowing:  # last: a first call may import much
            call_all(fn, exam.cases[:1], repeat=False)
    result = exam.judge(describe(fn), outcomes)
    if borrowing.found:
        return result.as_borrowed(borrowing.found)
    if any(outcome.error and outcome.error.type == TookTooLong.__name__ for outcome in outcomes):
        return result
    with patience():
        result = with_evidence(result, exam.exercise, fn)
    with patience():
        return with_repair(result, exam, fn, exercises.names())


def _borrowing(fn: Callable, exercise: Exercise) -> Borrowing:
    function, library = written(fn), {exercise.name: exercise.reference}
    for name in exercises.beside(exercise.name):
        with suppress(UserError):  # a fault in another exercise's files does not matter here
            library.setdefault(name, exercises.get(name).reference)
    return Borrowing(exercise.name, library, function.__globals__ if function else {})


def exercise_of(fn: Callable, exercise: str | Exercise | None) -> Exercise:
    """The exercise that is meant: the one given, or the one of the function's name."""
    if isinstance(exercise, Exercise):
        return exercise
    if not callable(fn):
        name = fn if isinstance(fn, str) else "my_function"
        raise UserError(f"check takes the function itself, without quotes or call: check({name}).")
    if exercise is not None:
        return exercises.get(exercise)
    name = str(getattr(fn, "__name__", type(fn).__name__))
    try:
        return exercises.get(name)
    except UserError as error:
        raise UserError(
            f"{error} If the function is called otherwise than its exercise, say which one it is: "
            'check(my_function, exercise="mean_reward").'
        ) from None


def _once_more(fn: Callable, exam: Exam, result: Result) -> Result:
    """The verdict in which faults of other exercises' functions, which it uses, do not count."""
    exercise, function = exam.exercise, written(fn)
    if function is None:
        return result
    namespace, uses, wrong = function.__globals__, describe(fn).uses, {}
    above = exercises.above(exercise.name)
    for name in exercises.names():
        there = name in above or callable(namespace.get(name))
        if not there or name not in uses or name == exercise.name:
            continue
        if state := _fault(name, namespace.get(name), exam.hidden):
            wrong[name] = state
    chosen = replaceable(exercise, [exercises.get(name) for name in above if name in wrong])
    references, again = {other.name: other.reference for other in chosen}, []
    if references:
        with replaced(namespace, references):
            again = [_examine(fn, exam)]
    return counting([result], again, wrong, references)[0]


def _fault(name: str, fn: Any, hidden: bool) -> str:
    """What is said of a function that another one uses; "" if it is right."""
    if not callable(fn):
        return UNDEFINED
    exam = Exam(exercises.get(name), hidden=hidden)
    with patience():
        if not exam.examine(describe(fn), call_all(fn, exam.cases)).failing:
            return ""  # without a look at all the library's functions that it might be
    theirs = _examine(fn, exam)
    return "" if theirs.passed or theirs.borrowed else theirs.state  # the library's own is right


def ready(*functions: Callable) -> bool:
    """Whether all functions are written, and all that this cell needs from cells above exists.

    Otherwise say what to do first: a cell above may have been skipped, or stopped halfway.
    """
    if unwritten := list(dict.fromkeys(filter(None, map(_unwritten, functions)))):
        names = " and ".join(unwritten)
        known = [name for name in unwritten if name in exercises.names()]
        first = f"Finish {names} first, then run this cell again."
        show(Notice(first, _way_on(known), _recorded()))
        return False
    if missing := _missing_in_this_cell():
        show(
            Notice(
                f"There is no `{missing[0]}` yet. A cell above makes it: run that cell to its end, "
                "then this one again.",
                expected=_recorded(),
            )
        )
        return False
    return True


def _unwritten(fn: Callable) -> str:
    """The function to write first, `fn` or one that it calls; "" where it is written."""
    exercise = exercise_of(fn, None)
    error = call(fn, Exam(exercise, seed=0).cases[0]).error
    if not error or error.type != "NotImplementedError":
        return ""
    return error.function or exercise.name


def _way_on(names: list[str]) -> str:
    if not names:
        return ""
    return (
        "Run this in a new cell: "
        f"`from rlcourse import borrow; borrow({', '.join(names)})`. It puts the course's version "
        "in place of yours for now, without points."
    )


def _recorded() -> str:
    """HTML that the running cell showed when the course ran it; "" if nothing is recorded."""
    shell = notebook()
    if shell is None:
        return ""
    return outputs.shown_by(shell.history_manager.input_hist_raw[-1], current().lessons)


def _missing_in_this_cell() -> list[str]:
    """Names that the notebook's running cell reads, and that are not defined."""
    shell = notebook()
    if shell is None:
        return []
    try:
        needed = free_names(shell.transform_cell(shell.user_ns["In"][-1]))
    except (SyntaxError, KeyError, IndexError):
        return []
    return sorted(needed - shell.user_ns.keys())


@dataclass(frozen=True)
class Notice:
    """One sentence in a frame, and what may follow it, folded: a way on, and what is expected."""

    text: str
    more: str = ""
    expected: str = ""  # HTML

    def __repr__(self) -> str:
        return f"{self.text} {self.more}".strip()

    def _repr_html_(self) -> str:
        from rlcourse.checks.telling.html import GREY, box, folded, prose

        parts = [prose(self.text)]
        if self.expected:
            parts.append(folded("What it showed when the course ran it", self.expected))
        if self.more:
            parts.append(folded("Use the course's version for now", prose(self.more)))
        return box("".join(parts), GREY)
