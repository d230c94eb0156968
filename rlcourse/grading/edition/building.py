"""Write the students' edition: which lessons it opens, and everything that goes into it."""

import datetime
import secrets
import shutil
import sys
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import nbformat
from tqdm import tqdm

import rlcourse
from rlcourse import exercises, published
from rlcourse.authoring.builder import stale_notebooks
from rlcourse.authoring.hosted import is_setup
from rlcourse.checks.exercise import Exercise
from rlcourse.checks.recorded import SUFFIX, record
from rlcourse.courses import Course, LessonFolder, current
from rlcourse.courses.finding import clone_root
from rlcourse.errors import UserError
from rlcourse.files import replace_bytes
from rlcourse.grading.books.extensions import known, stored
from rlcourse.grading.edition.blanking import blank, reachable, without_answers
from rlcourse.grading.gradescope.archive import copy_sources, wheel_of

DRAWINGS = 3  # of each exercise's cases; a check takes one of them
LARGEST_SEED = 2**31
TIME = "%Y-%m-%d %H:%M UTC"
FOR_STUDENTS = Path(__file__).with_name("INSTALL.md")


@dataclass(frozen=True)
class Edition:
    """What was written, and what is in it."""

    wheel: Path
    open: tuple[str, ...]  # lessons whose answers are in it
    withheld: tuple[str, ...]
    exercises: int  # that are withheld
    packed: tuple[str, ...]  # functions of these whose text goes along packed
    later: tuple[str, ...]  # exercises that are judged only when handed in
    why: tuple[str, ...] = ()  # sentences on lessons that are due: open, or closed all the same

    def __str__(self) -> str:
        size = self.wheel.stat().st_size / 2**20
        lines = [
            f"{self.wheel} ({size:.1f} MiB), and beside it {FOR_STUDENTS.name} and the notebooks",
            f"open: {', '.join(self.open) or 'no lesson'}",
            f"withheld: {', '.join(self.withheld) or 'no lesson'} ({self.exercises} exercises)",
        ]
        lines += self.why
        if self.packed:
            lines.append(
                "The library itself runs on these functions, so they are in the wheel, packed; "
                f"anyone who unpacks the wheel can read them: {', '.join(self.packed)}"
            )
        if self.later:
            lines.append(f"Judged only when handed in: {', '.join(self.later)}")
        return "\n".join(lines)


def write_edition(
    out: Path,
    opened: Sequence[str] = (),
    now: datetime.datetime | None = None,
    progress: bool = False,
    gradebook: Path | None = None,
) -> Edition:
    """Write the wheel, how to install it, and the notebooks to `out`, which is made or emptied.

    Lessons that are due by `now` for everybody, and those in `opened`, keep their answers. What
    students have more time for is read in `gradebook` (default: the ``course`` directory).
    """
    course, root = current(), clone_root()
    if course.is_package:
        raise UserError("the students' edition is of rlcourse alone: a course of your own has none")
    if root is None:
        raise UserError("the students' edition is made from a clone of the course: run it there")
    _refuse_foreign(out)
    moment = now or datetime.datetime.now(datetime.UTC)
    if gradebook is not None and not gradebook.is_dir():
        raise UserError(f"there is no course directory {gradebook}.")
    opens, why = _opened(course, opened, moment, known(gradebook or course.directory))
    closed = [lesson for lesson in course.lessons if lesson.name not in opens]
    names = {lesson.name for lesson in closed}
    registry = list(exercises.all(course, contests=True))
    if stale := next(stale_notebooks(course, registry), None):
        raise UserError(
            f"{stale} is out of date: run `rlcourse build {stale.stem[:2]}`, then make the edition "
            "again"
        )
    hidden = [e for e in registry if e.lesson in names]
    with tempfile.TemporaryDirectory(prefix="rlcourse-edition-") as scratch:
        if progress:
            print("recording cases and building the wheel: about two minutes", file=sys.stderr)
        tree = Path(scratch, "tree")
        copy_sources(root, tree)
        _record(tree, hidden, progress)
        packed = blank(tree, opens, names_of(closed), hidden)
        _strip(tree, course, closed)
        for path in sorted((tree / "notebooks").glob("*/*.ipynb")):
            _without_address(path)
        _name(tree, moment)
        name, wheel = wheel_of(tree)
        _empty(out)
        replace_bytes(out / name, wheel)
        page = FOR_STUDENTS.read_text("utf-8").replace("WHEEL", name)
        replace_bytes(out / FOR_STUDENTS.name, page.encode())
        shutil.copytree(tree / "notebooks", out / "notebooks")
    for lesson in opens:
        if (solution := course.solutions / f"{lesson}.ipynb").is_file():
            (out / "solutions").mkdir(exist_ok=True)
            shutil.copy(solution, out / "solutions")
    later = tuple(e.name for e in hidden if e.suspects or e.contest)
    return Edition(
        wheel=out / name,
        open=opens,
        withheld=tuple(names_of(closed)),
        exercises=len(hidden),
        packed=tuple(packed),
        later=later,
        why=why,
    )


def names_of(lessons: Iterable[LessonFolder]) -> list[str]:
    return [lesson.name for lesson in lessons]


def _opened(
    course: Course,
    wanted: Sequence[str],
    now: datetime.datetime,
    extensions: Mapping[str, Mapping[str, str]],
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The lessons that are asked for or due for everybody; and why a lesson that is due is open, or
    stays closed.

    Open lessons come before all others: a later lesson contains the functions of earlier ones.
    """
    asked = {course.lesson(one).name for one in wanted}
    opened: list[str] = []
    closed: list[LessonFolder] = []
    why: list[str] = []
    for lesson in course.lessons:
        due = course.due.get(lesson.name)
        until = max(map(stored, extensions.get(lesson.name, {}).values()), default=now)
        before = closed[0] if closed else None
        if lesson.name in asked and before:
            raise UserError(
                f"{lesson.name} is open, and its answers hold those of {before.name}, which "
                f"stays closed: add --open {before.number}, or wait with {lesson.name}"
            )
        is_due = due is not None and due <= now
        if lesson.name in asked or (is_due and until <= now and not before):
            opened.append(lesson.name)
        else:
            closed.append(lesson)
        if due and is_due and lesson.name not in asked:
            why.append(f"{lesson.number} {_reason(due, until, now, before)}")
    return tuple(opened), tuple(why)


def _reason(
    due: datetime.datetime,
    until: datetime.datetime,
    now: datetime.datetime,
    before: LessonFolder | None,
) -> str:
    """Why a lesson that is due is open, or stays closed; `before` is the first closed one, if any
    comes before it."""
    if until > now:
        return f"stays closed: an extension runs until {until:{TIME}}"
    if before:
        return f"stays closed: its answers hold those of {before.number}"
    at = due.astimezone(datetime.UTC)
    return f"is open: it was due {at:{TIME}}, and no extension entered here is still running"


def _record(tree: Path, hidden: list[Exercise], progress: bool) -> None:
    """Recorded cases in place of the exercises' files; nobody can draw the same ones again."""
    for exercise in tqdm(hidden, desc="record", unit="exercise", disable=not progress, leave=False):
        folder = tree / "course" / "lessons" / exercise.lesson
        seeds = [secrets.randbelow(LARGEST_SEED) for _ in range(DRAWINGS)]
        observe = ""
        if exercise.observe and not exercise.suspects:
            observe = reachable((folder / f"{exercise.name}.py").read_text("utf-8"), "observe")
        (folder / f"{exercise.name}{SUFFIX}").write_bytes(record(exercise, seeds, observe))


def _strip(tree: Path, course: Course, closed: list[LessonFolder]) -> None:
    """Leave of each closed lesson its text, without model answers, and what was recorded."""
    lessons = tree / "course" / "lessons"
    for lesson in closed:
        for path in (lessons / lesson.name).iterdir():
            if path.name == "lesson.md":
                path.write_text(without_answers(path.read_text("utf-8")), "utf-8")
            elif path.suffix != SUFFIX:
                path.unlink()
    if len(closed) == len(course.lessons):
        (lessons / "mistakes.md").unlink(missing_ok=True)
    shutil.rmtree(tree / "course" / "site", ignore_errors=True)


def _without_address(path: Path) -> None:
    """A notebook whose set-up cell does not install the whole course, and which links to none."""
    address = published.requirement()
    if not address:
        return
    notebook = nbformat.read(path, as_version=4)
    for cell in notebook.cells:
        if is_setup(cell):
            cell.source = cell.source.replace(f'set_up("{address}"', 'set_up(""')
    first = notebook.cells[0]
    lines = [line for line in first.source.splitlines() if not line.startswith("Open in [")]
    first.source = "\n".join(lines)
    path.write_text(nbformat.writes(notebook) + "\n", "utf-8")


def _name(tree: Path, now: datetime.datetime) -> None:
    """A version of its own, which pip takes for newer than the last edition's; and no address, from
    which the whole course could be installed in its place."""
    version = f"{rlcourse.__version__}+students.{now:%Y%m%d%H%M}"
    _replaced(tree / "rlcourse" / "__init__.py", f'"{rlcourse.__version__}"', f'"{version}"')
    if published.REPOSITORY:
        _replaced(tree / "rlcourse" / "published.py", f'"{published.REPOSITORY}"', '""')


def _replaced(path: Path, old: str, new: str) -> None:
    text = path.read_text("utf-8")
    path.write_text(text.replace(old, new, 1), "utf-8")


def _refuse_foreign(out: Path) -> None:
    """A directory that holds something else than an earlier edition is left alone."""
    if out.exists() and not out.is_dir():
        raise UserError(f"{out} is a file: name a directory")
    known = ("notebooks", "solutions", FOR_STUDENTS.name)
    strange = [p.name for p in out.glob("*") if p.name not in known and p.suffix != ".whl"]
    if strange:
        raise UserError(
            f"{out} holds {strange[0]}, which is of no edition: name an empty directory"
        )
    if out.resolve() in (current().notebooks.parent, current().directory):
        raise UserError(f"{out} belongs to the course itself: name another directory")


def _empty(out: Path) -> None:
    out.mkdir(parents=True, exist_ok=True)
    for path in out.glob("*"):
        if path.is_dir():
            shutil.rmtree(path)
        else:
            path.unlink()
