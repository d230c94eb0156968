"""Grade a lesson: every submission in its own confined process, judged here, written to nbgrader.

Several submissions run at a time, each in a thread that only waits for its process. Judging and the
gradebook happen in one place, one submission after the other.
"""

import json
import os
import time
from collections.abc import Callable, Iterator, Set
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path

import nbformat
import torch
from nbformat import from_dict

from rlcourse.authoring.notebooks import student_notebook
from rlcourse.courses import current
from rlcourse.errors import UserError
from rlcourse.grading.books import gradebook as nbgrader_side
from rlcourse.grading.books.gradebook import Course, Grades
from rlcourse.grading.confinement.isolation import LAYERS
from rlcourse.grading.handing_in import student_folder as submissions
from rlcourse.grading.handing_in.student_folder import HandedIn
from rlcourse.grading.judging.annotating import annotate
from rlcourse.grading.judging.judge import CHECK
from rlcourse.grading.judging.mark import Mark
from rlcourse.grading.judging.marking import Read, Reader, Readers
from rlcourse.grading.judging.secret import course_secret
from rlcourse.grading.locking import only_one, scratch_directory
from rlcourse.grading.names import alike, one_line, shown, twins
from rlcourse.grading.rejected import REFUSED, Rejected
from rlcourse.grading.report import Report, Row
from rlcourse.grading.running.library import write_library_of
from rlcourse.grading.running.limits import Limits
from rlcourse.grading.running.sandbox import Sandbox
from rlcourse.grading.running.steps import DIED, GRADED, Cell, Incident, Transcript
from rlcourse.words import counted


@dataclass(frozen=True)
class Options:
    """How to grade. `layers_off` switches isolation off layer by layer, to narrow down a fault."""

    force: bool = False  # grade again what was already graded
    strict: bool = False  # refuse to run if any isolation layer is missing
    allow_weak_isolation: bool = False  # run even if files or processes are within reach
    jobs: int | None = None  # submissions at a time; None: one per core
    limits: Limits = field(default_factory=Limits)
    layers_off: tuple[str, ...] = ()
    memory: int | None = None  # bytes per submission


@dataclass(frozen=True)
class Ran:
    """A submission after it ran, and its results."""

    handed_in: HandedIn
    read: Read
    seconds: float
    fingerprint: str = ""  # of what is not graded again; "" if the next run should retry it


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
    notebooks to its ``autograded`` directory. `on_row` is called with each submission when it is
    done, and with the number of all; `on_warning` with missing isolation layers. A submission that
    was graded before and has not changed is not graded again unless ``options.force``.
    """
    opened = course if isinstance(course, Course) else Course.of(course)
    lesson = opened.lesson(lesson)
    directory = Path(submitted or opened.step(opened.directory.submitted_directory)).resolve()
    students, everybody = _students(directory, lesson, student)
    source = nbgrader_side.load_source(opened, lesson)
    release = student_notebook(source, lesson, opened.root / "nbgrader_config.py")
    torch.set_num_threads(1)
    lock = opened.step(opened.directory.autograded_directory) / f".{lesson}.lock"
    busy = f"another grader is working on {lesson}: wait until it is done."
    with only_one(lock, 2, busy), Grades(opened, lesson, source) as grades:
        batch = _Batch(opened, lesson, directory, release, grades, options)
        known = grades.students()
        batch.twins = twins(everybody, known)
        report = batch.run(students, on_row or (lambda row, count: None), on_warning)
        if student is not None:
            return report
        return replace(report, absent=_absent(known, everybody))


def _absent(known: list[str], everybody: list[str]) -> tuple[str, ...]:
    """Those whom the gradebook knows and who handed in nothing, not even under a similar name."""
    present = {alike(name) for name in everybody}
    return tuple(sorted(name for name in known if alike(name) not in present))


def _students(directory: Path, lesson: str, student: str | None) -> tuple[list[str], list[str]]:
    """Names of the students who handed in something for the lesson: (to be graded, all)."""
    if not directory.is_dir():
        raise UserError(f"there is no directory {directory}: name the right one with --submitted.")
    everybody = submissions.students(directory, lesson)
    found = [name for name in everybody if student in (None, name)]
    if not found:
        by, place = f" by {shown(student)}" if student else "", shown(student or "STUDENT")
        raise UserError(f"there is no submission{by}: expected {directory}/{place}/{lesson}/.")
    return found, everybody


class _Batch:
    """One run over a lesson's submissions."""

    def __init__(self, course: Course, lesson, directory, release, grades: Grades, options):
        self.course, self.lesson, self.directory = course, lesson, directory
        self.release, self.grades, self.options = release, grades, options
        self.secret = course_secret(course.root)
        self.taught = current(course.root)
        self.reader = Reader(release, self.secret, options.limits, self.taught)
        self.exam = self.reader.exam
        self.graded_against = nbformat.writes(release).encode()
        self.twins: dict[str, list[str]] = {}  # names that are too similar to others
        self.entered_again = 0  # submissions that a lost gradebook did not have

    def run(self, students: list[str], on_row, on_warning) -> Report:
        rows, left = [], []
        for_a_person = {} if self.options.force else self.grades.waiting()
        known = self.grades.graded()
        for student in students:
            waits = for_a_person.get(student, {})
            row = None if self.options.force else self._row_of_before(student, waits, known)
            if row is None:
                left.append(student)
            else:
                rows.append(row)
                on_row(row, len(students))
        if self.entered_again:
            on_warning(
                f"the gradebook had no points of {counted(self.entered_again, 'submission')} that "
                "autograded/ holds: those by program are entered again. Points by hand are in your "
                "last backup, if there is one."
            )
        if left:
            for row in self._grade_all(left, on_warning):
                rows.append(row)
                on_row(row, len(students))
        late = self.grades.lateness()
        for i, row in enumerate(rows):
            seconds, penalty = late.get(row.student, (0.0, 0.0))
            rows[i] = replace(row, seconds_late=seconds, penalty=penalty)
        return Report(self.lesson, tuple(sorted(rows, key=lambda row: row.student)))

    def _row_of_before(self, student: str, waiting: dict[str, bool], known: Set[str]) -> Row | None:
        """What an earlier run found, with what is waiting for a person now. If the gradebook does
        not know of it, for instance because it was lost, the points are entered again."""
        handed_in = self._handed_in(student)
        if handed_in.nameless:
            return None
        receipt = nbgrader_side.read_receipt(self._autograded(student), self.secret)
        fingerprint = handed_in.fingerprint(self.graded_against)
        if receipt is None or receipt.get("fingerprint") != fingerprint:
            return None
        row = Row.from_json({**receipt["row"], "before": True})
        if student in known:
            self.grades.keep_time(student, handed_in.timestamp)
        else:
            waiting = self._enter_again(row, handed_in)
        failed = bool(waiting) and not row.exercises and row.status != GRADED
        return _for_a_person(row, handed_in, waiting, failed)

    def _enter_again(self, row: Row, handed_in: HandedIn) -> dict[str, bool]:
        """Enter the points of a submission that was graded before; what waits for a person."""
        text = self._autograded(handed_in.student).read_text("utf-8")
        marks = {
            f"{CHECK}{name}": Mark(name, m["points"], m["possible"], False, None, m["message"])
            for name, m in row.exercises.items()
        }
        self.entered_again += 1
        failed = not row.exercises
        return self.grades.write(
            handed_in.student, from_dict(json.loads(text)), marks, failed, handed_in.timestamp
        )[1]

    def _autograded(self, student: str) -> Path:
        return self.course.autograded(student, self.lesson)

    def _grade_all(self, students: list[str], on_warning) -> Iterator[Row]:
        jobs = max(1, min(self.options.jobs or _cores(), len(students)))
        # Readers first: they are forks of this process, which has no threads yet.
        with Readers(self.reader, jobs) as readers, self._sandbox() as sandbox:
            self._verify_layers(sandbox, on_warning)
            with ThreadPoolExecutor(jobs) as pool:
                try:
                    run = partial(self._run, readers, sandbox)
                    for done in as_completed([pool.submit(run, student) for student in students]):
                        yield self._record_safely(done.result())
                except BaseException:
                    sandbox.close()  # or the threads would wait for their submissions
                    pool.shutdown(cancel_futures=True)
                    raise

    @contextmanager
    def _sandbox(self) -> Iterator[Sandbox]:
        with scratch_directory() as scratch:
            library = scratch / "library"
            asked = self.exam.exercises.values()
            hidden = write_library_of(library, self.taught, self.lesson, asked)
            with Sandbox(
                library,
                scratch / "server",
                [s.source for s in self.exam.steps(self.release) if isinstance(s, Cell)],
                [*hidden, self.course.root, self.directory],
                self.options.layers_off,
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

    def _handed_in(self, student: str) -> HandedIn:
        if others := self.twins.get(student):
            named = ", ".join(map(shown, others))
            reason = f"easily confused with {named}: rename one of them"
            return HandedIn(student, rejected=Rejected(REFUSED, reason))
        return submissions.read(self.directory, student, self.lesson)

    def _run(self, readers: Readers, sandbox: Sandbox, student: str) -> Ran:
        """Read and run a submission. A failure becomes its status, and never ends the batch."""
        start = time.perf_counter()
        handed_in = self._handed_in(student)
        fingerprint = handed_in.fingerprint(self.graded_against)
        try:
            if handed_in.rejected:
                raise handed_in.rejected
            read = readers.read(handed_in.data, sandbox)
        except Rejected as rejected:
            read = self._rejected(rejected)
        except UserError:  # no submission can be run
            raise
        except Exception as error:  # this one cannot, and the next run tries it again
            reason = f"it could not be graded ({type(error).__name__}: {error})"
            read, fingerprint = self._rejected(Rejected(DIED, reason)), ""
        return Ran(handed_in, read, time.perf_counter() - start, fingerprint)

    def _rejected(self, rejected: Rejected) -> Read:
        """The released notebook, with the reason why the submission is not graded."""
        notebook = from_dict(self.release)
        incidents = [Incident(rejected.status, self.lesson, rejected.reason)]
        annotate(notebook, Transcript(), {}, incidents)
        return Read(notebook, {}, tuple(incidents), failed=True)

    def _record_safely(self, ran: Ran) -> Row:
        """Record the results; of a submission that cannot be recorded, the row alone says so, and
        the next run tries it again."""
        try:
            return self._record(ran)
        except UserError:  # not this submission's fault, so the next run grades it
            raise
        except OSError as error:
            reason = error.strerror or error
            raise UserError(
                f"the grades of {ran.handed_in.shown} could not be written ({reason}): fix that, "
                "then run the same command again, which continues where this one stopped."
            ) from error
        except Exception as error:
            self.grades.gradebook.db.rollback()
            rejected = Rejected(DIED, f"its results cannot be written ({type(error).__name__})")
            return self._record(replace(ran, read=self._rejected(rejected)), written=False)

    def _record(self, ran: Ran, written: bool = True) -> Row:
        """Write a submission's grades and its notebook, or with `written` False only its row."""
        start = time.perf_counter()
        handed_in, notebook, marks = ran.handed_in, ran.read.notebook, ran.read.marks
        incidents = (*ran.read.incidents, *handed_in.remarks)
        student, score = handed_in.student, 0.0
        waiting: dict[str, bool] = {}
        writable = written and not handed_in.nameless and student not in self.twins
        if writable:
            score, waiting = self.grades.write(
                student, notebook, marks, ran.read.failed, handed_in.timestamp
            )
        row = Row(
            student=handed_in.shown,
            status=incidents[0].status if incidents else GRADED,
            score=score,
            possible=sum(float(e.points) for e in self.exam.exercises.values()),
            exercises={mark.exercise: mark.as_row() for mark in marks.values()},
            questions=nbgrader_side.questions(notebook, marks),
            incidents=tuple(one_line(str(incident)) for incident in incidents),
            seconds=round(ran.seconds + time.perf_counter() - start, 4),
        )
        failed = not writable or (ran.read.failed and bool(waiting))
        row = _for_a_person(row, handed_in, waiting, failed)
        if writable:
            path = self._autograded(student)
            receipt = {"fingerprint": ran.fingerprint, "row": row.as_json()}
            nbgrader_side.write_notes(path.parent, dict(handed_in.notes))
            nbgrader_side.write_receipt(path, notebook, receipt, self.secret)
            nbgrader_side.remove_leftovers(path)
        return row


def _for_a_person(row: Row, handed_in: HandedIn, waiting: dict[str, bool], failed: bool) -> Row:
    """The row with what a person has to do: of a submission that `failed`, to look at it."""
    odd = [row.status] if failed else [remark.status for remark in handed_in.remarks]
    return row.with_waiting(waiting, ", ".join(odd))


def _cores() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
