"""Grade a lesson: every submission in its own confined process, judged here, written to nbgrader.

Several submissions run at a time, each in a thread that only waits for its process. Judging and the
gradebook happen in one place, one submission after the other.
"""

import os
import time
from collections.abc import Callable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path

import nbformat
import torch
from nbformat import from_dict

from rlcourse.authoring.notebooks import student_notebook
from rlcourse.errors import UserError
from rlcourse.exercises import all as all_exercises
from rlcourse.grading import gradebook as nbgrader_side
from rlcourse.grading.gradebook import Course, Grades
from rlcourse.grading.isolation import LAYERS
from rlcourse.grading.judging import course_secret
from rlcourse.grading.library import PACKAGE, write_library
from rlcourse.grading.locking import only_one, scratch_directory
from rlcourse.grading.protocol import clean
from rlcourse.grading.reading import Read, Reader, Readers
from rlcourse.grading.report import Report, Row
from rlcourse.grading.sandbox import DIED, GRADED, Cell, Incident, Limits, Sandbox, Transcript
from rlcourse.grading.submission import (
    REFUSED,
    Rejected,
    digest,
    find_notebook,
    read_bytes,
)


@dataclass(frozen=True)
class Options:
    """How to grade. `layers_off` switches isolation off layer by layer, to narrow down a fault."""

    force: bool = False  # grade again what was graded already
    strict: bool = False  # refuse to run where any isolation layer is missing
    allow_weak_isolation: bool = False  # run where not even files or processes are out of reach
    jobs: int | None = None  # submissions at a time; None: one per core
    limits: Limits = field(default_factory=Limits)
    layers_off: tuple[str, ...] = ()
    memory: int | None = None  # bytes per submission


@dataclass(frozen=True)
class Ran:
    """A submission after it ran, and what came of it."""

    student: str
    fingerprint: str
    read: Read
    notes: dict[str, str]
    seconds: float


def grade(
    lesson: str,
    submitted: Path | None = None,
    student: str | None = None,
    *,
    course: Course | Path | None = None,
    options: Options = Options(),
    on_row: Callable[[Row, int], None] | None = None,
    on_warning: Callable[[str], None] = lambda text: None,
) -> Report:
    """Grade the submissions of `lesson` in `submitted`, a directory STUDENT/LESSON/LESSON.ipynb.

    Grades go to the gradebook of `course` (default: the ``course`` directory of the repository),
    notebooks to its ``autograded`` directory. `on_row` hears of each submission as it is done, with
    the number of all; `on_warning` of isolation layers that are missing. What was graded before
    and has not changed is not graded again unless ``options.force``.
    """
    opened = course if isinstance(course, Course) else Course.open(_course_root(course))
    lesson = _lesson_name(opened, lesson)
    directory = Path(submitted or opened.step(opened.directory.submitted_directory)).resolve()
    students = _students(directory, lesson, student)
    source = nbgrader_side.load_source(opened, lesson)
    release = student_notebook(source, lesson, opened.root / "nbgrader_config.py")
    torch.set_num_threads(1)
    lock = opened.step(opened.directory.autograded_directory) / f".{lesson}.lock"
    busy = f"another grader is at work on {lesson}: wait until it is done."
    with only_one(lock, 2, busy), Grades(opened, lesson, source) as grades:
        batch = _Batch(opened, lesson, directory, release, grades, options)
        return batch.run(students, on_row or (lambda row, count: None), on_warning)


def _course_root(course: Path | None) -> Path:
    if course is not None:
        if not course.is_dir():
            raise UserError(f"there is no course directory {course}.")
        return course
    from rlcourse.authoring import find_root

    return find_root() / "course"


def _lesson_name(course: Course, wanted: str) -> str:
    sources = course.step(course.directory.source_directory)
    known = sorted(path.parent.name for path in sources.glob("*/*.ipynb"))
    for name in known:
        if wanted in (name, *name.split("_", 1)):
            return name
    choice = f"choose from {', '.join(known)}" if known else "run `rlcourse build` first"
    raise UserError(f"there is no lesson {wanted!r} in {sources}: {choice}.")


def _students(directory: Path, lesson: str, student: str | None) -> list[str]:
    """Names of those who have handed in something for the lesson."""
    if not directory.is_dir():
        raise UserError(f"there is no directory {directory}: say where with --submitted.")
    wanted = None if student in (None, "", "*") else student
    found = sorted(
        entry.name
        for entry in os.scandir(directory)
        if (wanted is None or entry.name == wanted)
        and not entry.name.startswith(".")
        and os.path.lexists(os.path.join(entry.path, lesson))
    )
    if not found:
        who = f"{wanted} has" if wanted else "nobody has"
        raise UserError(f"{who} handed in {lesson} in {directory}: expected STUDENT/{lesson}/.")
    return found


class _Batch:
    """One run over a lesson's submissions."""

    def __init__(self, course: Course, lesson, directory, release, grades: Grades, options):
        self.course, self.lesson, self.directory = course, lesson, directory
        self.release, self.grades, self.options = release, grades, options
        self.secret = course_secret(course.root)
        self.reader = Reader(release, self.secret, options.limits)
        self.exam = self.reader.exam
        self.graded_against = nbformat.writes(release).encode()

    def run(self, students: list[str], on_row, on_warning) -> Report:
        rows, waiting = [], []
        for student in students:
            row = None if self.options.force else self._row_of_before(student)
            if row is None:
                waiting.append(student)
            else:
                rows.append(row)
                on_row(row, len(students))
        if waiting:
            for row in self._grade_all(waiting, on_warning):
                rows.append(row)
                on_row(row, len(students))
        return Report(self.lesson, tuple(sorted(rows, key=lambda row: row.student)))

    def _row_of_before(self, student: str) -> Row | None:
        receipt = nbgrader_side.read_receipt(self._autograded(student), self.secret)
        if receipt is None or receipt.get("fingerprint") != self._read(student)[0]:
            return None
        return Row.from_json({**receipt["row"], "before": True})

    def _autograded(self, student: str) -> Path:
        return self.course.autograded(student, self.lesson)

    def _grade_all(self, students: list[str], on_warning) -> Iterator[Row]:
        jobs = max(1, min(self.options.jobs or _cores(), len(students)))
        # Readers first: they are forks of this process, which has no threads yet.
        with Readers(self.reader, jobs) as readers, self._sandbox() as sandbox:
            self._verify_layers(sandbox, on_warning)
            with ThreadPoolExecutor(jobs) as pool:
                try:
                    run = partial(self._run, readers)
                    for ran in _as_they_finish(pool, run, students, sandbox, 2 * jobs):
                        yield self._record_safely(ran)
                except BaseException:
                    sandbox.close()  # or the threads would wait for their submissions
                    pool.shutdown(cancel_futures=True)
                    raise

    @contextmanager
    def _sandbox(self) -> Iterator[Sandbox]:
        hidden = [PACKAGE, PACKAGE.parent / "solutions", self.course.root, self.directory]
        with scratch_directory() as scratch:
            library = scratch / "library"
            later = [e for e in all_exercises() if e.lesson >= self.lesson]
            write_library(library, [*self.exam.exercises.values(), *later])
            with Sandbox(
                library,
                scratch / "server",
                [s.source for s in self.exam.steps(self.release) if isinstance(s, Cell)],
                hidden,
                self.options.layers_off,
                self.options.limits,
                self.options.memory,
            ) as sandbox:
                yield sandbox

    def _verify_layers(self, sandbox: Sandbox, on_warning) -> None:
        missing = [name for name in LAYERS if name not in sandbox.layers.standing]
        if not missing:
            return
        weakness = sandbox.layers.weakness()
        if weakness and not self.options.allow_weak_isolation:
            raise UserError(
                f"nothing was graded: {weakness}. Grade on another machine, or, where you trust "
                "every submission, with --allow-weak-isolation (under nbgrader: "
                "c.IsolatedAutograde.allow_weak_isolation = True)."
            )
        reasons = "; ".join(f"{name} ({sandbox.layers.missing.get(name, '?')})" for name in missing)
        if self.options.strict:
            raise UserError(f"isolation is not complete, and --strict refuses: {reasons}.")
        on_warning(
            "STUDENT CODE IS NOT FULLY ISOLATED HERE. Missing: "
            f"{reasons}. `rlcourse doctor` says how to get it; --strict refuses to grade without."
        )

    # One submission

    def _read(self, student: str) -> tuple[str, bytes, Rejected | None]:
        """(fingerprint, content, why there is none)."""
        try:
            if clean(student) != student or "/" in student or not student.isprintable():
                raise Rejected(REFUSED, "a name that cannot be written")
            read = os.path.join(self.directory, student, self.lesson)
            if os.path.islink(os.path.dirname(read)) or os.path.islink(read):
                raise Rejected(REFUSED, "the directory is a symlink")
            if not os.path.isdir(read):
                raise Rejected(REFUSED, f"{self.lesson} is no directory")
            name = find_notebook(Path(read), self.lesson)
            data = read_bytes(self.directory, student, self.lesson, name)
            return digest(self.graded_against, data), data, None
        except Rejected as rejected:
            reason = f"{rejected.status}: {rejected.reason}".encode()
            return digest(self.graded_against, b"", reason), b"", rejected
        except OSError as error:
            rejected = Rejected("unreadable file", error.strerror or str(error))
            return digest(self.graded_against, b"", rejected.reason.encode()), b"", rejected

    def _run(self, readers: Readers, student: str, sandbox: Sandbox) -> Ran:
        start = time.perf_counter()
        fingerprint, data, rejected = self._read(student)
        notes = nbgrader_side.read_notes(self.directory, student, self.lesson)
        try:
            read = self._rejected(rejected) if rejected else readers.read(data, sandbox)
        except Rejected as error:
            read = self._rejected(error)
        return Ran(student, fingerprint, read, notes, time.perf_counter() - start)

    def _rejected(self, rejected: Rejected) -> Read:
        """The released notebook, with the reason why nothing of the submission is graded."""
        notebook = from_dict(self.release)
        incidents = [Incident(rejected.status, self.lesson, rejected.reason)]
        nbgrader_side.annotate(notebook, Transcript(), {}, incidents)
        return Read(notebook, {}, tuple(incidents), failed=True)

    def _record_safely(self, ran: Ran) -> Row:
        """Record; what cannot be recorded as it came is recorded as having failed."""
        try:
            return self._record(ran)
        except UserError:  # not this submission's fault, and it is graded by the next run
            raise
        except OSError as error:
            raise UserError(
                f"the grades of {ran.student} could not be written ({error.strerror or error}): "
                "mend that, then run the same command again, which goes on where this one stopped."
            ) from error
        except Exception as error:
            self.grades.gradebook.db.rollback()
            rejected = Rejected(DIED, f"its results cannot be written, {type(error).__name__}")
            return self._record(replace(ran, read=self._rejected(rejected)))

    def _record(self, ran: Ran) -> Row:
        start = time.perf_counter()
        notebook, marks, incidents = ran.read.notebook, ran.read.marks, ran.read.incidents
        score, needs_person = 0.0, False
        writable = clean(ran.student) == ran.student and ran.student.isprintable()
        if writable:
            timestamp = ran.notes.get(nbgrader_side.TIMESTAMP)
            score, needs_person = self.grades.write(
                ran.student, notebook, marks, ran.read.failed, timestamp
            )
        row = Row(
            student=clean(ran.student) if ran.student.isprintable() else ascii(ran.student),
            status=incidents[0].status if incidents else GRADED,
            score=score,
            possible=sum(float(e.points) for e in self.exam.exercises.values()),
            needs_person=needs_person,
            exercises={
                m.exercise: {"points": m.points, "possible": m.possible, "mistake": m.mistake}
                for m in marks.values()
            },
            incidents=tuple(str(incident) for incident in incidents),
            seconds=round(ran.seconds + time.perf_counter() - start, 4),
        )
        if writable:
            path = self._autograded(ran.student)
            receipt = {"fingerprint": ran.fingerprint, "row": row.as_json()}
            nbgrader_side.write_notes(path.parent, ran.notes)
            nbgrader_side.write_receipt(path, notebook, receipt, self.secret)
            nbgrader_side.remove_leftovers(path)
        return row


def _as_they_finish(pool, function, students, sandbox, ahead: int) -> Iterator[Ran]:
    """Results in the order in which they come, never more than `ahead` waiting."""
    left = list(reversed(students))
    running: set[Future] = set()
    while left or running:
        while left and len(running) < ahead:
            running.add(pool.submit(function, left.pop(), sandbox))
        done: set[Future]
        done, running = wait(running, return_when=FIRST_COMPLETED)
        for future in done:
            yield future.result()


def _cores() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
