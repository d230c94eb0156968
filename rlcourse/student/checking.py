"""What a lesson calls: ``check``, ``hint`` and ``ready``."""

import os
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from html import escape

from rlcourse import exercises
from rlcourse.checks.calling import Facts, call, call_all, describe
from rlcourse.checks.exam import Exam
from rlcourse.checks.exercise import Exercise
from rlcourse.checks.names import free_names
from rlcourse.checks.result import CheckFailed, Result
from rlcourse.checks.shrinking import with_smaller_example
from rlcourse.errors import UserError
from rlcourse.student import record
from rlcourse.student.patience import patience

SLOW = 5.0  # seconds for all the cases: more calls would try the reader's patience
_hints_shown: dict[str, int] = {}


def check(
    fn: Callable,
    exercise: str | Exercise | None = None,
    seed: int | None = None,
    hidden: bool = False,
) -> Result:
    """Compare `fn` with the reference on fresh cases; the exercise is found by its name.

    With `hidden` the cases are larger and the message holds none of their numbers. Under
    nbgrader's Validate a failed check raises ``CheckFailed``.
    """
    chosen = _exercise_of(fn, exercise)
    result = _examine(fn, chosen, seed, hidden)
    if not result.passed:
        result = _blame_dependency(fn, chosen, result)
    execution = os.environ.get("NBGRADER_EXECUTION")
    if not hidden and execution is None:
        record.save(result)
    if hidden and execution == "autograde":
        _display(result)  # the cell's own output is the number of points
    if execution == "validate" and not result.passed:
        raise CheckFailed(result)
    return result


def _examine(fn: Callable, exercise: Exercise, seed: int | None, hidden: bool) -> Result:
    exam, began = Exam(exercise, seed, hidden), time.monotonic()
    with patience():
        outcomes = call_all(fn, exam.cases)
        result = exam.judge(describe(fn), outcomes)
        if time.monotonic() - began > SLOW:
            return result
        return with_smaller_example(result, exercise, fn)


def _exercise_of(fn: Callable, exercise: str | Exercise | None) -> Exercise:
    if isinstance(exercise, Exercise):
        return exercise
    if not callable(fn):
        name = fn if isinstance(fn, str) else "my_function"
        raise UserError(f"check takes the function itself, without quotes or call: check({name}).")
    return exercises.get(exercise or str(getattr(fn, "__name__", type(fn).__name__)))


def _blame_dependency(fn: Callable, exercise: Exercise, result: Result) -> Result:
    """Say first that another exercise's function, which this one calls, is the one to mend."""
    for name, dependency in _dependencies(fn, describe(fn)):
        if name == exercise.name:
            continue
        theirs = _examine(dependency, exercises.get(name), None, False)
        if not theirs.passed:
            return result.blamed_on(theirs)
    return result


def _dependencies(fn: Callable, facts: Facts) -> Iterator[tuple[str, Callable]]:
    """Functions of the notebook's namespace that `fn` reads and that are exercises themselves."""
    namespace = getattr(fn, "__globals__", {})
    known = {exercise.name for exercise in exercises.all()}
    for name in facts.uses:
        if name in known and callable(namespace.get(name)):
            yield name, namespace[name]


def ready(*functions: Callable) -> bool:
    """Whether all functions are written, and there is all that this cell takes from cells above.

    Otherwise say what to do first: a cell above may have been passed over, or stopped half-way.
    """
    for fn in functions:
        exercise = _exercise_of(fn, None)
        error = call(fn, exercise.draw_cases(seed=0)[0]).error
        if error and error.type == "NotImplementedError":
            name = exercise.name if error.function in ("", exercise.name) else error.function
            _display(Notice(f"Finish {name} first, then run this cell again."))
            return False
    if missing := _missing_in_this_cell():
        _display(
            Notice(
                f"There is no `{missing[0]}` yet. A cell above makes it: run that one, and let it "
                "run to its end, then this one again."
            )
        )
        return False
    return True


def _missing_in_this_cell() -> list[str]:
    """Names that the notebook's running cell reads, and that nobody has defined."""
    shell = sys.modules["IPython"].get_ipython() if "IPython" in sys.modules else None
    if shell is None:
        return []
    try:
        needed = free_names(shell.transform_cell(shell.user_ns["In"][-1]))
    except (SyntaxError, KeyError, IndexError):
        return []
    return sorted(needed - shell.user_ns.keys())


def hint(fn: Callable | str) -> "Hint":
    """One more hint with every call: a nudge, the idea, nearly the code."""
    exercise = exercises.get(fn) if isinstance(fn, str) else _exercise_of(fn, None)
    shown = min(_hints_shown.get(exercise.name, 0) + 1, len(exercise.hints))
    _hints_shown[exercise.name] = shown
    return Hint(exercise.name, exercise.hints[:shown], len(exercise.hints))


@dataclass(frozen=True)
class Hint:
    """The hints unfolded so far; the newest is open."""

    exercise: str
    hints: tuple[str, ...]
    available: int

    def __repr__(self) -> str:
        lines = [f"Hint {i} of {self.available}: {text}" for i, text in enumerate(self.hints, 1)]
        return "\n".join([*lines, *self._more()])

    def _more(self) -> list[str]:
        if len(self.hints) < self.available:
            return [f"hint({self.exercise}) again for the next one."]
        return []

    def _repr_html_(self) -> str:
        from rlcourse.checks.html import GREY, box, folded, prose

        newest = len(self.hints)
        parts = [
            folded(f"Hint {i} of {self.available}", _hint_html(text), is_open=i == newest)
            for i, text in enumerate(self.hints, 1)
        ]
        parts += [f'<div style="opacity: .7">{prose(more)}</div>' for more in self._more()]
        return box("".join(parts), GREY)


def _hint_html(text: str) -> str:
    """Prose, and indented code after a blank line as it stands."""
    from rlcourse.checks.html import prose

    words, _, code = text.partition("\n\n")
    block = f'<pre style="background: none">{escape(code)}</pre>' if code else ""
    return prose(words) + block


@dataclass(frozen=True)
class Notice:
    """One sentence in a frame."""

    text: str

    def __repr__(self) -> str:
        return self.text

    def _repr_html_(self) -> str:
        from rlcourse.checks.html import GREY, box, prose

        return box(prose(self.text), GREY)


def _display(thing) -> None:
    """Show in a notebook; elsewhere print."""
    if "IPython" in sys.modules and sys.modules["IPython"].get_ipython():
        from IPython.display import display

        display(thing)
    else:
        print(thing)
