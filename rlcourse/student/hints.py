"""``hint``: help for those who are stuck, a step at a time."""

from collections.abc import Callable
from dataclasses import dataclass

from rlcourse import exercises
from rlcourse.student.checking import exercise_of
from rlcourse.student.display import Shown

_asked: dict[str, int] = {}  # how often, by exercise


def hint(fn: Callable | str) -> "Hint":
    """A nudge, the idea, nearly the code: in a notebook all three, to unfold one by one; in a
    terminal, one more with every call."""
    exercise = exercises.get(fn) if isinstance(fn, str) else exercise_of(fn, None)
    unfolded = min(_asked.get(exercise.name, 0) + 1, len(exercise.hints))
    _asked[exercise.name] = unfolded
    return Hint(exercise.name, exercise.hints, unfolded).at_once()


@dataclass
class Hint(Shown):
    """An exercise's hints; the newest of those that are `unfolded` is open."""

    exercise: str
    hints: tuple[str, ...]
    unfolded: int

    def __repr__(self) -> str:
        said = self.hints[: self.unfolded]
        lines = [f"Hint {i} of {len(self.hints)}: {text}" for i, text in enumerate(said, 1)]
        if self.unfolded < len(self.hints):
            lines.append(f"hint({self.exercise}) again for the next one.")
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        from rlcourse.checks.telling.html import GREY, box, folded, hint_html

        parts = [
            folded(f"Hint {i} of {len(self.hints)}", hint_html(text), is_open=i == self.unfolded)
            for i, text in enumerate(self.hints, 1)
        ]
        return box("".join(parts), GREY)
