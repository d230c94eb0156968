"""Everything that reads one submission, from its bytes to its marks, for a process of its own.

The references stay in memory beside it, but nothing that a student sent is ever looked up or run:
what the sandbox answered is built by ``protocol`` and believed by ``answers`` before it is judged.
"""

import json
import os
import socket
from dataclasses import asdict, dataclass, field
from typing import Any

from nbformat import NotebookNode, from_dict

from rlcourse.grading import gradebook as nbgrader_side
from rlcourse.grading.disposable import Channel, Disposable
from rlcourse.grading.disposable import Lost as LostReader
from rlcourse.grading.judging import LessonExam, Mark
from rlcourse.grading.sandbox import (
    DIED,
    OVER_MEMORY,
    TIMED_OUT,
    Cell,
    ExamRequest,
    Incident,
    Limits,
    Lost,
    Sandbox,
    Transcript,
)
from rlcourse.grading.submission import REFUSED, UNREADABLE, Rejected, know, parse, rebuild

MOST_SHOWN, LONGEST_SHOWN, LONGEST_LINE = 200_000, 20_000, 500  # characters of code
MOST_WRITTEN = 400_000  # characters of Markdown, as it was rewritten
LARGEST_NOTEBOOK = 16 * 2**20  # characters, with what was added in grading
# Runs the lesson's cells that show off finished functions, too; they take a second or two.
SHOW = Cell("show", "__import__('rlcourse.student').student.showing = True")


@dataclass(frozen=True)
class Read:
    """What is known of a submission: its notebook with verdicts, what it earns, what happened."""

    notebook: NotebookNode
    marks: dict[str, Mark] = field(default_factory=dict)
    incidents: tuple[Incident, ...] = ()
    failed: bool = False  # nothing of it could be graded


class Reader:
    """The work of a disposable process: a submission's bytes in, what it earns out."""

    def __init__(self, release: NotebookNode, secret: bytes, limits: Limits):
        self.release, self._secret, self.limits = release, secret, limits
        self.exam = LessonExam(release, secret, limits)
        know(release)
        self._worked_out: set[tuple] = set()

    def __reduce__(self):
        return Reader, (self.release, self._secret, self.limits)

    def prepare(self, hints: Any) -> None:
        """Work out what an earlier submission needed of the declared mistakes, to keep it."""
        new = [tuple(hint) for hint in hints or () if tuple(hint) not in self._worked_out]
        self.exam.work_out(new)
        self._worked_out.update(new)

    def do(self, request: bytes, ask: Channel) -> dict:
        before = set(self.exam.worked_out())
        try:
            read = self._read(request, RemoteSandbox(ask, self.limits))
            text = json.dumps(read.notebook)
            if len(text) > LARGEST_NOTEBOOK:
                raise Rejected(REFUSED, "it is too large once it is taken apart")
        except Rejected as rejected:
            return {"rejected": [rejected.status, rejected.reason]}
        except MemoryError:
            return {"rejected": [OVER_MEMORY, "it takes too much memory to read"]}
        except Exception as error:  # a fault of ours on a strange submission
            reason = f"it cannot be taken apart, {type(error).__name__}"
            return {"rejected": [UNREADABLE, reason]}
        return {
            "notebook": text,
            "marks": {name: asdict(mark) for name, mark in read.marks.items()},
            "incidents": [asdict(incident) for incident in read.incidents],
            "hints": [hint for hint in self.exam.worked_out() if hint not in before],
        }

    def _read(self, data: bytes, sandbox: Sandbox) -> Read:
        notebook = rebuild(self.release, parse(data))
        steps = self.exam.steps(notebook)
        transcript = run_apart(sandbox, steps)
        if _lacks_a_name(transcript):
            transcript = run_apart(sandbox, [SHOW, *steps])
        marks = self.exam.judge(transcript)
        nbgrader_side.annotate(notebook, transcript, marks, transcript.incidents)
        shorten(notebook)
        return Read(notebook, marks, tuple(transcript.incidents))


def run_apart(sandbox: Sandbox, steps: list[Cell | ExamRequest]) -> Transcript:
    """Carry out the steps, the tests that students wrote in a process of their own.

    There they may call right implementations, so nothing else is asked there.
    """
    tests = [s for s in steps if isinstance(s, ExamRequest) and s.answer]
    transcript = sandbox.run([s for s in steps if s not in tests])
    if tests:
        alone = sandbox.run([s for s in steps if isinstance(s, Cell) or s in tests])
        transcript.exams |= alone.exams
        transcript.incidents += [i for i in alone.incidents if i not in transcript.incidents]
    return transcript


def shorten(notebook: NotebookNode) -> None:
    """Cut what nobody would read, now that it has run: the pages that show the notebook color code,
    which takes the square of the length of a line, and take Markdown apart once more."""
    code, written = MOST_SHOWN, MOST_WRITTEN
    for cell in notebook.cells:
        if cell.cell_type == "code":
            cell.source = _shortened(cell.source, min(code, LONGEST_SHOWN))
            code -= len(cell.source)
        elif _is_students(cell):
            if len(cell.source) > written:
                cell.source = f"({len(cell.source)} characters, too much to be shown here)"
            written -= len(cell.source)


def _is_students(cell: NotebookNode) -> bool:
    added = cell.metadata.get("rlcourse", {}).get("added")
    return bool(added or cell.metadata.get("nbgrader", {}).get("solution"))


def _shortened(source: str, most: int) -> str:
    most = max(most, 0)
    lines = source[:most].split("\n")
    if len(source) <= most and max(map(len, lines)) <= LONGEST_LINE:
        return source
    cut = [line if len(line) <= LONGEST_LINE else f"{line[:LONGEST_LINE]}…" for line in lines]
    return "\n".join([f"# shortened: {len(source)} characters were handed in", *cut])


class RemoteSandbox(Sandbox):
    """A sandbox whose server is somebody else's, who starts and ends processes on it for us."""

    def __init__(self, ask: Channel, limits: Limits):
        self._ask, self.limits = ask, limits

    def open_process(self) -> tuple[int, socket.socket]:
        self._ask.tell({"open": True})
        number = self._ask.hear()
        return number, socket.socket(fileno=self._ask.take())

    def how_it_ended(self, number: int) -> Lost:
        self._ask.tell({"ended": number})
        return Lost(*self._ask.hear())

    def kill(self, number: int) -> None:
        self._ask.tell({"kill": number})

    def processor_seconds(self, number: int) -> float | None:
        self._ask.tell({"spent": number})
        return self._ask.hear()


def answer_for(sandbox: Sandbox):
    """What a ``RemoteSandbox`` asks for, done on the real one."""

    def answer(question: dict, channel: Channel) -> None:
        if "open" in question:
            number, process = sandbox.open_process()
            with process:
                channel.tell(number)
                channel.pass_on(process.fileno())
        elif "kill" in question:
            sandbox.kill(question["kill"])
        elif "spent" in question:
            channel.tell(sandbox.processor_seconds(question["spent"]))
        elif "ended" in question:
            lost = sandbox.how_it_ended(question["ended"])
            channel.tell([lost.status, lost.detail])

    return answer


class Readers:
    """As many warm readers as submissions are read at a time; each is one thread's for a while."""

    def __init__(self, reader: Reader, count: int):
        self._idle = [Disposable(reader) for _ in range(count)]
        self._all = list(self._idle)
        self._hints: list[list] = []

    def __enter__(self) -> "Readers":
        return self

    def __exit__(self, *_) -> None:
        for process in self._all:
            process.close()

    def read(self, data: bytes, sandbox: Sandbox) -> Read:
        """Run and judge a submission. Raises ``Rejected``, also where reading it is too much."""
        process = self._idle.pop()
        try:
            found = process.run(data, answer_for(sandbox), self._hints)
        except LostReader as lost:
            raise _in_words(lost) from None
        finally:
            self._idle.append(process)
        if "rejected" in found:
            raise Rejected(*found["rejected"])
        known = {tuple(hint) for hint in self._hints}
        self._hints += [hint for hint in found["hints"] if tuple(hint) not in known]
        return Read(
            notebook=from_dict(json.loads(found["notebook"])),
            marks={name: Mark(**mark) for name, mark in found["marks"].items()},
            incidents=tuple(Incident(**incident) for incident in found["incidents"]),
        )


def _in_words(lost: LostReader) -> Rejected:
    if lost.by_time:
        return Rejected(TIMED_OUT, "it takes too long to read")
    how = f"signal {lost.signal}" if lost.signal else "an exit"
    if lost.status is not None and os.WIFEXITED(lost.status):
        how = f"exit {os.WEXITSTATUS(lost.status)}"
    return Rejected(DIED, f"the process that read it ended by {how}")


def _lacks_a_name(transcript: Transcript) -> bool:
    """Whether a function looked for a name that nobody defined, or that a passed-over cell does."""
    return any(
        outcome.error and outcome.error.type == "NameError"
        for answer in transcript.exams.values()
        for outcome in answer.outcomes
    )
