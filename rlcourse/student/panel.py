"""``progress()``: points and a bar for each lesson, what is next, and the rest folded."""

from dataclasses import dataclass
from datetime import datetime
from html import escape
from pathlib import Path

from rlcourse import exercises
from rlcourse.checks.telling.result import right_once
from rlcourse.courses import current
from rlcourse.student.borrowing import borrowed
from rlcourse.student.display import Shown
from rlcourse.student.record import load, not_kept
from rlcourse.words import counted, points_of

BLOCKS = 10  # of a bar in a terminal
EMPTY = "rgba(128, 128, 128, .3)"  # what is left of a bar


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
    """A lesson's exercises. `link` is the path of its notebook from here, or ""."""

    name: str
    heading: str
    rows: tuple[Row, ...]
    due: datetime | None = None
    link: str = ""

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
    borrowed: tuple[str, ...] = ()  # functions of the course's in place of one's own, for now

    @property
    def done(self) -> int:
        return sum(row.passed for lesson in self.lessons for row in lesson.rows)

    @property
    def total(self) -> int:
        return sum(len(lesson.rows) for lesson in self.lessons)

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

    def text(self, everything: bool = False) -> str:
        """For a terminal: a line for each lesson, and the exercises of the next one, or all."""
        lines = [f"{self.done} of {self.total} exercises pass · {_tally(self._rows)[0]}"]
        following = self.next
        if following:
            lesson, row = following
            number = lesson.name.partition("_")[0]
            lines.append(f"next: {row.name} in lesson {number}, `rlcourse lab {number}`")
        for lesson in self.lessons:
            lines.append(f"{_blocks(lesson.rows)}  {_tally(lesson.rows)[0]:18} {lesson.title}")
            if everything or (following and lesson is following[0]):
                lines += [f"  {row.sign} {row.name}  {row.words}" for row in lesson.rows]
        return "\n".join([*lines, *self._notes])

    __repr__ = text

    @property
    def _notes(self) -> list[str]:
        names = ", ".join(f"`{name}`" for name in self.borrowed)
        lent = f"Borrowed in this notebook, without points: {names}." if names else ""
        return list(filter(None, [lent, not_kept()]))

    @property
    def _rows(self) -> tuple[Row, ...]:
        return tuple(row for lesson in self.lessons for row in lesson.rows)

    def _repr_html_(self) -> str:
        from rlcourse.checks.telling.html import GREEN, GREY, box, prose

        head = f"<strong>{self.done} of {self.total} exercises pass</strong>"
        parts = [f"<div>{_bar(self._rows)} {head} · {_tally(self._rows)[0]}</div>"]
        following = self.next
        if following:
            lesson, row = following
            name = escape(row.name)
            name = _linked(name, f"{lesson.link}#cell-id={row.name}") if lesson.link else name
            parts.append(f"<div>Next: {name}, in lesson {escape(lesson.title)}</div>")
        shown = self.here or (following[0].name if following else "")
        parts += [_folded(lesson, lesson.name == shown) for lesson in self.lessons]
        parts += [f'<div style="margin-top: .4em">{prose(note)}</div>' for note in self._notes]
        return box("".join(parts), GREY if following else GREEN)


def progress() -> Progress:
    """What passes and what does not, over all lessons, what is next, and when lessons are due."""
    course = current()
    here = _lesson_here([lesson.name for lesson in course.lessons])
    lessons = tuple(
        Lesson(
            lesson.name,
            lesson.heading,
            tuple(_row(exercises.get(name, course)) for name in lesson.exercises),
            course.due.get(lesson.name),
            _link(lesson.name, here),
        )
        for lesson in course.lessons
        if lesson.exercises
    )
    return Progress(lessons, here, tuple(borrowed())).at_once()


def _row(exercise) -> Row:
    entry = load(exercise.name)
    still_wrong = tuple(name for name in entry.pop("once") if not load(name)["passed"])
    return Row(exercise.name, float(exercise.points), **entry, once=still_wrong)


def _lesson_here(names: list[str]) -> str:
    """The lesson whose folder is the current directory, as it is for a notebook's kernel."""
    return Path.cwd().name if Path.cwd().name in names else ""


def _link(name: str, here: str) -> str:
    """The path of a lesson's notebook from the current one; "" if it is not there."""
    path = Path("..", name, f"{name}.ipynb")
    return path.as_posix() if here and path.is_file() else ""


def _linked(html: str, address: str) -> str:
    return f'<a href="{escape(address)}">{html}</a>'


def _tally(rows: tuple[Row, ...]) -> tuple[str, float]:
    """What is done in words, and its share: of the points, or of the exercises if none has any."""
    done, possible = sum(row.earned for row in rows), sum(row.points for row in rows)
    if possible:
        return points_of(done, possible), done / possible
    passed = sum(row.passed for row in rows)
    return f"{passed} of {counted(len(rows), 'exercise')}", passed / max(1, len(rows))


def _blocks(rows: tuple[Row, ...]) -> str:
    filled = int(BLOCKS * _tally(rows)[1] + 1e-9)
    return "█" * filled + "░" * (BLOCKS - filled)


def _bar(rows: tuple[Row, ...]) -> str:
    from rlcourse.checks.telling.html import GREEN

    share = f"{100 * _tally(rows)[1]:.0f}%"
    colors = f"linear-gradient(to right, {GREEN} {share}, {EMPTY} {share})"
    return (
        f'<span role="img" aria-label="{share}" style="display: inline-block; width: 7em; '
        f'height: .6em; border-radius: .3em; margin-right: .5em; background: {colors}"></span>'
    )


def _folded(lesson: Lesson, is_open: bool) -> str:
    exercises = "".join(map(_chip, lesson.rows))
    chips = f'<div style="display: flex; flex-wrap: wrap; gap: 0 1.2em">{exercises}</div>'
    link = _linked("open this lesson", lesson.link) if lesson.link and not is_open else ""
    return (
        f'<details{" open" * is_open} style="margin: .2em 0"><summary style="cursor: pointer">'
        f"{_bar(lesson.rows)}{escape(lesson.title)} · {_tally(lesson.rows)[0]}</summary>"
        f'<div style="padding-left: 1.2em">{chips}{link}</div></details>'
    )


def _chip(row: Row) -> str:
    from rlcourse.checks.telling.html import AMBER, GREEN, RED, prose

    sign = row.sign
    if row.attempts:
        color = AMBER if row.once else GREEN if row.passed else RED
        sign = f'<span style="color: {color}">{sign}</span>'
    proviso = f" · {prose(right_once(row.once))}" if row.once else ""
    return (
        f'<span title="{escape(row.words)}">{sign} <code>{escape(row.name)}</code>{proviso}</span>'
    )
