"""``hint``: help for those who are stuck, a step at a time."""

from collections.abc import Callable
from dataclasses import dataclass

from rlcourse import exercises
from rlcourse.student.checking import exercise_of
from rlcourse.student.display import Shown


def hint(fn: Callable | str) -> "Hint":
    """A nudge, the idea, nearly the code: in a notebook to unfold one by one."""
    exercise = exercises.get(fn) if isinstance(fn, str) else exercise_of(fn, None)
    return Hint(exercise.hints).at_once()


@dataclass
class Hint(Shown):
    """An exercise's hints; the first one is open."""

    hints: tuple[str, ...]

    def __repr__(self) -> str:
        return "\n".join(f"Hint {i} of {len(self.hints)}: {h}" for i, h in enumerate(self.hints, 1))

    def _repr_html_(self) -> str:
        from rlcourse.checks.telling.html import GREY, box, folded, hint_html

        parts = [
            folded(f"Hint {i} of {len(self.hints)}", hint_html(text), is_open=i == 1)
            for i, text in enumerate(self.hints, 1)
        ]
        return box("".join(parts), GREY)
