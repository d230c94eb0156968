"""Everything that reads one submission, from its bytes to its marks, for a process of its own.

The references are in the same memory, but nothing that a student sent is ever looked up or run:
``wire`` decodes the sandbox's answers and ``answers`` validates them before they are judged.
"""

import json
import socket
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from typing import Any, TypeGuard

from nbformat import NotebookNode, from_dict

from rlcourse.checks.asking.calling import Outcome
from rlcourse.courses import Course
from rlcourse.grading.confinement.disposable import Disposable
from rlcourse.grading.confinement.disposable import Lost as LostReader
from rlcourse.grading.handing_in.submission import parse, rebuild
from rlcourse.grading.judging.annotating import annotate
from rlcourse.grading.judging.judge import LessonExam
from rlcourse.grading.judging.mark import Mark
from rlcourse.grading.rejected import REFUSED, UNREADABLE, Rejected
from rlcourse.grading.running.answers import LOST, ExamAnswer
from rlcourse.grading.running.conversation import Conversation
from rlcourse.grading.running.limits import Limits
from rlcourse.grading.running.sandbox import Account, Sandbox, reading_bounds, why_unread
from rlcourse.grading.running.steps import (
    ENDINGS,
    OVER_MEMORY,
    Cell,
    ExamRequest,
    Incident,
    Transcript,
)

LARGEST_NOTEBOOK = 16 * 2**20  # characters, with what was added in grading
# Also runs the lesson's cells that show off finished functions, which take a second or two.
SHOW = Cell("show", "__import__('rlcourse.student').student.showing = True")


@dataclass(frozen=True)
class Read:
    """What is known about a submission: its notebook with verdicts, its points, incidents."""

    notebook: NotebookNode
    marks: dict[str, Mark] = field(default_factory=dict)
    incidents: tuple[Incident, ...] = ()
    failed: bool = False  # it could not be graded


class Reader:
    """The work of a disposable process: a submission's bytes in, what it earns out."""

    def __init__(
        self, release: NotebookNode, secret: bytes, limits: Limits, course: Course | None = None
    ):
        self.release, self._secret, self.limits, self._course = release, secret, limits, course
        self.exam = LessonExam(release, secret, limits, course)
        self._worked_out: set[tuple] = set()

    def __reduce__(self):
        return Reader, (self.release, self._secret, self.limits, self._course)

    def prepare(self, warm_up_keys: Any) -> None:
        """Compute and keep the declared mistakes that an earlier submission needed."""
        new = [tuple(key) for key in warm_up_keys or () if tuple(key) not in self._worked_out]
        self.exam.work_out(new)
        self._worked_out.update(new)

    def do(self, request: bytes, line: socket.socket | None) -> dict:
        before = set(self.exam.worked_out())
        try:
            assert line, "a submission needs its line to the server"
            read = self._read(request, Account(line, self.limits))
            text = json.dumps(read.notebook)
            if len(text) > LARGEST_NOTEBOOK:
                raise Rejected(REFUSED, "it is too large when unpacked")
        except Rejected as rejected:
            return {"rejected": [rejected.status, rejected.reason]}
        except MemoryError:
            return {"rejected": [OVER_MEMORY, "it takes too much memory to read"]}
        except Exception as error:  # a fault of ours on a strange submission
            reason = f"it cannot be read ({type(error).__name__})"
            return {"rejected": [UNREADABLE, reason]}
        return {
            "notebook": text,
            "marks": {name: asdict(mark) for name, mark in read.marks.items()},
            "incidents": [asdict(incident) for incident in read.incidents],
            "warm_up_keys": [key for key in self.exam.worked_out() if key not in before],
        }

    def _read(self, data: bytes, account: Account) -> Read:
        notebook = rebuild(self.release, parse(data))
        steps = self.exam.steps(notebook)
        transcript = run_first(account, steps)
        if _lacks_a_name(transcript) and not account.is_over():
            again = run_first(account, [SHOW, *steps])
            if not account.is_over():
                steps, transcript = [SHOW, *steps], again
        marks = self.exam.judge(transcript, notebook, partial(run_rest, account, steps, transcript))
        annotate(notebook, transcript, marks, transcript.incidents)
        return Read(notebook, marks, tuple(transcript.incidents))


def run_first(account: Account, steps: list[Cell | ExamRequest]) -> Transcript:
    """Carry out the steps, tests that students wrote left out, with nothing right in reach."""
    return Conversation(account).run([step for step in steps if not _is_test(step)])


def run_rest(
    account: Account,
    steps: list[Cell | ExamRequest],
    transcript: Transcript,
    requests: dict[str, ExamRequest],
) -> Transcript:
    """What is answered to the `requests`, in their order; what students' tests say is added to the
    `transcript` of the first run.

    Each is asked in a process of its own, in which nothing else is asked: there a right
    implementation of another function can be called. None is asked after one in which its own
    function can be: whatever a process could leave for the next one would be of no use. Cells that
    took too much are left out: they would take as much once more.
    """
    took_too_much = {i.where for i in transcript.incidents if i.status in ENDINGS}
    again = Transcript()
    for name, request in requests.items():
        cells = [cell for cell in _above(name, steps) if cell.name not in took_too_much]
        again.exams |= Conversation(account).run([*cells, request]).exams
    for test in filter(_is_test, steps):
        above = _above(test.name, steps)
        found = _sit_in_parts(account, above, test)
        if SHOW not in above and _lacks_a_name(found) and not account.is_over():
            shown = _sit_in_parts(account, [SHOW, *above], test)
            found = found if account.is_over() else shown
        transcript.exams |= found.exams
        transcript.incidents[:] = dict.fromkeys([*transcript.incidents, *found.incidents])
    return again


def _is_test(step: Cell | ExamRequest) -> TypeGuard[ExamRequest]:
    """Whether it asks a test that a student wrote, which sees right implementations."""
    return isinstance(step, ExamRequest) and bool(step.parts)


def _above(name: str, steps: list[Cell | ExamRequest]) -> list[Cell]:
    """The cells before the step of that name."""
    at = next(i for i, step in enumerate(steps) if step.name == name)
    return [step for step in steps[:at] if isinstance(step, Cell)]


def _sit_in_parts(account: Account, above: list[Cell], test: ExamRequest) -> Transcript:
    """What a student's test says of each implementation, each of which it sees alone."""
    found, facts, outcomes = Transcript(), None, [Outcome(error=LOST)] * len(test.questions)
    for places, request in test.parts:
        alone = Conversation(account).run([*above, request])
        # An exit's status would tell a number that a test has seen.
        found.incidents += [
            replace(i, detail="") if i.where == test.name else i for i in alone.incidents
        ]
        answer = alone.exams.get(test.name)
        if answer is None or answer.facts is None:
            if facts is None:  # there is no such function
                found.exams |= alone.exams
                return found
            continue
        facts = facts or answer.facts
        for place, outcome in zip(places, answer.outcomes, strict=True):
            outcomes[place] = outcome
        if all(o.error and o.error.type == "NotImplementedError" for o in answer.outcomes):
            outcomes = [answer.outcomes[0]] * len(test.questions)  # it is not written
            break
    found.exams[test.name] = ExamAnswer(facts, tuple(outcomes))
    return found


class Readers:
    """As many warm readers as submissions are read at once; each serves one thread at a time."""

    def __init__(self, reader: Reader, count: int):
        bounds = reading_bounds(reader.limits)
        self._idle = [Disposable(reader, bounds) for _ in range(count)]
        self._all = list(self._idle)
        self._warm_up_keys: list[list] = []

    def __enter__(self) -> "Readers":
        return self

    def __exit__(self, *_) -> None:
        for process in self._all:
            process.close()

    def read(self, data: bytes, sandbox: Sandbox) -> Read:
        """Run and judge a submission. Raises ``Rejected``, also if reading it takes too much."""
        process = self._idle.pop()
        try:
            with sandbox.line() as line:
                found = process.run(data, self._warm_up_keys, line)
        except LostReader as lost:
            raise why_unread(lost) from None
        finally:
            self._idle.append(process)
        if "rejected" in found:
            raise Rejected(*found["rejected"])
        known = {tuple(key) for key in self._warm_up_keys}
        self._warm_up_keys += [key for key in found["warm_up_keys"] if tuple(key) not in known]
        return Read(
            notebook=from_dict(json.loads(found["notebook"])),
            marks={name: Mark.from_json(mark) for name, mark in found["marks"].items()},
            incidents=tuple(Incident(**incident) for incident in found["incidents"]),
        )


def _lacks_a_name(transcript: Transcript) -> bool:
    """Whether a function looked for an undefined name, or for one that a skipped cell defines."""
    return any(
        outcome.error and outcome.error.type == "NameError"
        for answer in transcript.exams.values()
        for outcome in answer.outcomes
    )
