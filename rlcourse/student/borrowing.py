"""``borrow``: the course's version of a function, for whoever wants to see the rest first."""

import sys
from collections.abc import Callable

from rlcourse import exercises
from rlcourse.errors import UserError
from rlcourse.student.checking import Notice, exercise_of
from rlcourse.student.display import show


def borrow(*functions: Callable | str) -> None:
    """Put the course's versions in place of `functions`, in this notebook, until their cells run
    again or the kernel restarts. They earn no points: to ``check`` they are not written.

    Raises ``UserError`` where nothing is named, or what is no exercise's.
    """
    if not functions:
        raise UserError("borrow takes the functions to borrow: borrow(my_function).")
    namespace = sys._getframe(1).f_globals  # a notebook's cells and a script alike
    found = [exercises.get(f) if isinstance(f, str) else exercise_of(f, None) for f in functions]
    for exercise in found:
        namespace[exercise.name] = exercise.reference
    names = ", ".join(f"`{exercise.name}`" for exercise in found)
    show(
        Notice(
            f"{names}: the course's version for now, without points. Run the cell above again to "
            "see it at work. Yours is back as soon as you run the cell that defines it."
        )
    )
