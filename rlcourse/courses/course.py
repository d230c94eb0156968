"""What ``course.toml`` says, and the folders of its lessons. Nothing here imports torch.

    title = "Reinforcement learning at our university"
    lessons = ["rlcourse:00_start_here", "rlcourse:02_policy_gradient", "03_our_own"]

    [points]                       # of exercises and of questions
    reinforce_loss = 5
    [due]
    02_policy_gradient = "2027-02-01 23:59 Europe/Berlin"  # or 2027-02-01T23:59:00+01:00

``rlcourse:`` takes a lesson from the course of that name; the others are in ``lessons/`` next to
the file. ``notebooks`` and ``solutions`` may name other folders than those there, and ``pages``
texts in which ``rlcourse build`` fills in what it counts.
"""

import datetime
import re
import tomllib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from difflib import get_close_matches
from functools import cache, cached_property
from pathlib import Path
from typing import Annotated

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError

from rlcourse.errors import UserError
from rlcourse.moments import moment

FILE = "course.toml"
LESSON_NAME = re.compile(r"\d\d_[a-z][a-z0-9_]*")
EXERCISE_CELL = re.compile(r'^```python .*?exercise="([^"]*)"', re.MULTILINE)
QUESTION = re.compile(r'question="([^"]*)"')
Amount = Annotated[float, Field(ge=0, allow_inf_nan=False)]  # of points or minutes


def _moment(told: object) -> datetime.datetime:
    """A due date with its time zone: a clone on another machine must read the same moment."""
    try:
        return moment(str(told), default=None)  # TOML's own dates are written without quotes
    except (ValueError, OverflowError, LookupError):
        raise ValueError(
            "write a date and time with its time zone, such as 2027-02-01 23:59 Europe/Berlin"
        ) from None


class Settings(BaseModel):
    """The keys of ``course.toml``."""

    model_config = ConfigDict(extra="forbid", strict=True)

    name: str = Field("", pattern=r"^[\w.-]*$")  # of folders, and of the gradebook
    title: str = ""
    lessons: list[str] = Field(min_length=1)
    notebooks: str = "notebooks"
    solutions: str = "solutions"
    pages: list[str] = []
    points: dict[str, Amount] = {}
    due: dict[str, Annotated[datetime.datetime, BeforeValidator(_moment)]] = {}
    renamed: dict[str, str] = {}
    sample: dict[str, str] = {}


@dataclass(frozen=True)
class LessonFolder:
    """A lesson's files. ``home`` is the directory of the course that it was written for."""

    name: str  # "06_grpo"
    directory: Path
    home: Path

    @property
    def text(self) -> Path:
        return self.directory / "lesson.md"

    @property
    def number(self) -> str:
        return self.name.partition("_")[0]

    @property
    def topic(self) -> str:
        return self.name.partition("_")[2]

    @cached_property
    def heading(self) -> str:
        """The heading of its text, such as "06 · GRPO"; its name if the text begins with none."""
        found = re.search(r"^# (.+)$", self.text.read_text("utf-8"), re.MULTILINE)
        return found[1].strip() if found else self.name

    @property
    def title(self) -> str:
        """The heading without its number: "GRPO"."""
        return re.sub(r"^[0-9]+\W+", "", self.heading)

    @cached_property
    def exercises(self) -> tuple[str, ...]:
        """The names of its exercises, in the order of their cells."""
        try:
            return tuple(EXERCISE_CELL.findall(self.text.read_text("utf-8")))
        except (OSError, UnicodeDecodeError) as error:
            raise UserError(f"{self.text} cannot be read as UTF-8 text ({error}).") from error

    def cell(self, exercise: str) -> str:
        """Where the cell of an exercise is, as ``…/lesson.md:12``."""
        for i, line in enumerate(self.text.read_text("utf-8").splitlines(), start=1):
            if (found := EXERCISE_CELL.match(line)) and found[1] == exercise:
                return f"{self.text}:{i}"
        return str(self.text)


@dataclass(frozen=True, eq=False)  # itself alone, so that it can be a key
class Course:
    """A course as its ``course.toml`` describes it."""

    directory: Path  # where course.toml lies
    name: str
    title: str
    lessons: tuple[LessonFolder, ...]  # in order
    notebooks: Path
    solutions: Path
    points: Mapping[str, float] = field(default_factory=dict)  # where they differ
    due: Mapping[str, datetime.datetime] = field(default_factory=dict)  # by lesson
    pages: tuple[Path, ...] = ()  # texts with counts and tables of the course
    renamed: Mapping[str, str] = field(default_factory=dict)  # earlier names of exercises
    sample: Mapping[str, str] = field(default_factory=dict)  # the bug that `rlcourse demo` shows

    @property
    def file(self) -> Path:
        return self.directory / FILE

    @property
    def is_package(self) -> bool:
        """Whether it is an instructor's own course, installed next to rlcourse."""
        return (self.directory / "__init__.py").is_file()

    @cached_property
    def exercises(self) -> dict[str, LessonFolder]:
        """Every exercise's lesson, by the exercise's name and in order."""
        found: dict[str, LessonFolder] = {}
        for lesson in self.lessons:
            for name in lesson.exercises:
                if name in found:
                    raise UserError(
                        f"{lesson.cell(name)}: exercise {name!r} is in lesson "
                        f"{found[name].name} already; use each name only once in a course."
                    )
                found[name] = lesson
        return found

    def lesson(self, wanted: str) -> LessonFolder:
        """The lesson of that number (1 and 01 alike), topic or name, or of the only name that
        begins so; a ``UserError`` that lists them if there is none."""
        names = [lesson.name for lesson in self.lessons]
        if name := chosen(names, wanted):
            return self.lessons[names.index(name)]
        known = ", ".join(names) or "none yet"
        raise UserError(f"there is no lesson {wanted!r}; the lessons are {known}")

    def in_order(self, names: Iterable[str]) -> list[str]:
        """Names of lessons in this course's order; those that it does not have come last."""
        own = [lesson.name for lesson in self.lessons]
        return sorted(names, key=lambda name: (own.index(name) if name in own else len(own), name))

    def beside(self, lesson: str) -> tuple[LessonFolder | None, LessonFolder | None]:
        """The lesson that precedes it and the one that follows, if any."""
        around = [None, *self.lessons, None]
        at = around.index(self.lesson(lesson))
        return around[at - 1], around[at + 1]

    def notebook(self, lesson: str) -> Path:
        """Where the students' notebook of a lesson is."""
        return self.notebooks / lesson / f"{lesson}.ipynb"


def chosen(names: Sequence[str], wanted: str) -> str | None:
    """The one lesson that is wanted, if there is just one: by its number (1 and 01 are the same),
    its topic, its whole name, or the beginning of one of these."""
    if not wanted:
        return None
    number = wanted.zfill(2) if wanted.isdigit() else wanted
    for name in names:
        if wanted == name or number == name.partition("_")[0] or wanted == name.partition("_")[2]:
            return name
    begin = [n for n in names if n.startswith(wanted) or n.partition("_")[2].startswith(wanted)]
    return begin[0] if len(begin) == 1 else None


def read_course(directory: Path, named: Callable[[str], "Course"]) -> Course:
    """The course in `directory`; `named` finds other courses, which lessons are taken from.

    Raises:
        UserError: ``course.toml`` is missing, cannot be read, or contains a mistake.
    """
    try:
        written = (directory / FILE).stat().st_mtime_ns
    except OSError:
        written = 0
    return _read_course(directory, written, named)


@cache
def _read_course(directory: Path, written: int, named: Callable[[str], Course]) -> Course:
    """Read again only if the file was written since."""
    path = directory / FILE
    try:
        told = tomllib.loads(path.read_text("utf-8"))
    except FileNotFoundError:
        raise UserError(f"there is no {FILE} in {directory}") from None
    except (OSError, ValueError) as error:
        raise UserError(f"{path} cannot be read: {error}.") from error
    try:
        settings = Settings.model_validate(told)
    except ValidationError as error:
        raise UserError(f"{path}: {complaint(error, Settings)[1]}.") from error
    lessons = tuple(_lesson_folder(directory, entry, named) for entry in settings.lessons)
    _verify_once(lessons, path)
    course = Course(
        directory=directory,
        name=settings.name or directory.name,
        title=settings.title or directory.name,
        lessons=lessons,
        notebooks=(directory / settings.notebooks).resolve(),
        solutions=(directory / settings.solutions).resolve(),
        points=settings.points,
        due=settings.due,
        pages=tuple(p for p in map(directory.joinpath, settings.pages) if p.is_file()),
        renamed=settings.renamed,
        sample=settings.sample,
    )
    _verify_overrides(course)
    return course


def complaint(error: ValidationError, model: type[BaseModel]) -> tuple[str, str]:
    """The first wrong key of some settings, and what is wrong with it."""
    fault = error.errors()[0]
    key, known = str([*fault["loc"], "all of it"][0]), list(model.model_fields)
    if fault["type"] == "extra_forbidden":
        close = get_close_matches(key, known, n=1)
        hint = f"did you mean {close[0]}?" if close else f"use {', '.join(known)}"
        return key, f"unknown key {key!r}; {hint}"
    where = ".".join(map(str, fault["loc"])) or key
    if fault["type"] == "missing":
        return key, f"{where} is missing"
    return key, f"{where} is {fault['input']!r}: {fault['msg'].removeprefix('Value error, ')}"


def _lesson_folder(directory: Path, entry: str, named: Callable[[str], Course]) -> LessonFolder:
    course, _, name = entry.rpartition(":")
    if course:
        try:
            home = named(course)
        except UserError as error:
            raise UserError(f"{directory / FILE}: {error}") from error
        for lesson in home.lessons:
            if lesson.name == name:
                return lesson
        names = ", ".join(lesson.name for lesson in home.lessons)
        raise UserError(f"{directory / FILE}: {course} has no lesson {name!r}; it has {names}")
    if not LESSON_NAME.fullmatch(name):
        raise UserError(
            f"{directory / FILE}: name a lesson NN_topic, two digits and lower-case letters, as in "
            f"01_first, and not {name!r}."
        )
    folder = directory / "lessons" / name
    if not (folder / "lesson.md").is_file():
        raise UserError(f"{directory / FILE}: lesson {name!r} has no {folder / 'lesson.md'}")
    return LessonFolder(name, folder, directory)


def _verify_once(lessons: tuple[LessonFolder, ...], path: Path) -> None:
    for i, lesson in enumerate(lessons):
        if any(lesson.name == earlier.name for earlier in lessons[:i]):
            raise UserError(f"{path}: lesson {lesson.name!r} is listed twice.")


def _verify_overrides(course: Course) -> None:
    """What is overridden exists: exercises and questions by points, lessons by due dates."""
    if course.points:
        texts = [lesson.text.read_text("utf-8") for lesson in course.lessons]
        known = {*course.exercises, *(name for text in texts for name in QUESTION.findall(text))}
        for name in sorted(course.points.keys() - known):
            close = get_close_matches(name, known, n=1)
            hint = f"; did you mean {close[0]}?" if close else "."
            sentence = f"[points] has {name!r}, no exercise or question here{hint}"
            raise UserError(f"{course.file}: {sentence}")
    names = [lesson.name for lesson in course.lessons]
    for name in sorted(course.due.keys() - set(names)):
        raise UserError(f"{course.file}: [due] has {name!r}; the lessons are {', '.join(names)}.")
