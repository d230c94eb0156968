"""``progress()``: points and a bar for each lesson, what is next, and that lesson's exercises."""

from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from rlcourse import exercises
from rlcourse.checks.telling.result import right_once
from rlcourse.courses import current
from rlcourse.student.display import Shown
from rlcourse.student.record import load
from rlcourse.words import counted, points_of

BLOCKS = 10  # of a bar


@dataclass(frozen=True)
class Row:
    """An exercise and what the record says of it."""

    name: str
    points: float
    passed: bool
    attempts: int
    score: float  # the best one, in [0, 1]
    once: tuple[str, ...] = ()  # wrong functions without which it passes

    @property
    def earned(self) -> float:
        return self.points * (1.0 if self.passed else self.score)

    @property
    def sign(self) -> str:
        return "✓" if self.passed else "✗" if self.attempts else "·"

    @property
    def words(self) -> str:
        if self.passed:
            passes = right_once(self.once) if self.once else "passes"
            return f"{passes}, {counted(self.points, 'point')}"
        if self.attempts:
            return f"{counted(self.attempts, 'attempt')}, {points_of(self.earned, self.points)}"
        return f"not begun, {counted(self.points, 'point')}"


@dataclass(frozen=True)
class Lesson:
    """A lesson's exercises, and when it is due."""

    name: str
    heading: str
    rows: tuple[Row, ...]
    due: datetime | None = None

    @property
    def title(self) -> str:
        """Its heading, which begins with its number, and when it is due, in the course's own zone:
        a hub's machine is often set to another one than the people who use it."""
        due = f" · due {self.due:%Y-%m-%d %H:%M %Z}" if self.due else ""
        return f"{self.heading}{due}"


@dataclass
class Progress(Shown):
    """The panel of ``progress()``. `here` is the lesson that the student is in, if any."""

    lessons: tuple[Lesson, ...]
    here: str = ""

    @property
    def next(self) -> tuple[Lesson, Row] | None:
        """The first exercise that does not pass yet, from the current lesson on; None at the end.

        Outside of any lesson, it starts at the last one that was begun.
        """
        begun = [i for i, one in enumerate(self.lessons) if any(r.attempts for r in one.rows)]
        present = [i for i, one in enumerate(self.lessons) if one.name == self.here]
        start = (present or begun[-1:] or [0])[0]
        for lesson in (*self.lessons[start:], *self.lessons[:start]):
            for row in lesson.rows:
                if not row.passed:
                    return lesson, row
        return None

    def text(self) -> str:
        """A line for each lesson, and the exercises of the next one."""
        rows = tuple(row for lesson in self.lessons for row in lesson.rows)
        done = sum(row.passed for row in rows)
        lines = [f"{done} of {len(rows)} exercises pass · {_tally(rows)[0]}"]
        following = self.next
        if following:
            lesson, row = following
            number = lesson.name.partition("_")[0]
            lines.append(f"next: {row.name} in lesson {number}, `rlcourse lab {number}`")
        for lesson in self.lessons:
            words, share = _tally(lesson.rows)
            filled = int(BLOCKS * share + 1e-9)
            bar = "█" * filled + "░" * (BLOCKS - filled)
            lines.append(f"{bar}  {words:18} {lesson.title}")
            if following and lesson is following[0]:
                lines += [f"  {row.sign} {row.name}  {row.words}" for row in lesson.rows]
        return "\n".join(lines)

    __repr__ = text

    def _repr_html_(self) -> str:
        from rlcourse.checks.telling.html import GREEN, GREY, box, prose

        style = "white-space: pre-wrap; font-family: var(--jp-code-font-family, monospace)"
        lines = "\n".join(map(prose, self.text().splitlines()))
        return box(f'<div style="{style}">{lines}</div>', GREY if self.next else GREEN)


def progress() -> Progress:
    """What passes and what does not, over all lessons, what is next, and when lessons are due."""
    course = current()
    here = Path.cwd().name  # for a notebook's kernel the folder of its lesson
    lessons = tuple(
        Lesson(
            lesson.name,
            lesson.heading,
            tuple(_row(exercises.get(name, course)) for name in lesson.exercises),
            course.due.get(lesson.name),
        )
        for lesson in course.lessons
        if lesson.exercises
    )
    return Progress(lessons, here).at_once()


def _row(exercise) -> Row:
    entry = load(exercise.name)
    still_wrong = tuple(name for name in entry.pop("once") if not load(name)["passed"])
    return Row(exercise.name, float(exercise.points), **entry, once=still_wrong)


def _tally(rows: tuple[Row, ...]) -> tuple[str, float]:
    """What is done in words, and its share: of the points, or of the exercises if none has any."""
    done, possible = sum(row.earned for row in rows), sum(row.points for row in rows)
    if possible:
        return points_of(done, possible), done / possible
    passed = sum(row.passed for row in rows)
    return f"{passed} of {counted(len(rows), 'exercise')}", passed / max(1, len(rows))
