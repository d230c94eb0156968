"""The trusted end of the pipe: start the untrusted server, run submissions on it, keep the time.

A submission is a list of steps, cells and exams. ``Sandbox.run`` has them carried out in a confined
process and returns what was answered. When the process is lost, to a loop that no alarm ends, to a
signal, to a reply that is none, another one takes its place, leaves out the step that was fatal,
and goes on with the rest.
"""

import itertools
import json
import math
import os
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path
from queue import SimpleQueue

from rlcourse.errors import UserError
from rlcourse.grading import isolation, protocol, visible
from rlcourse.grading.answers import (
    LATE,
    LOST,
    CellAnswer,
    ExamInParts,
    failure_of,
    fields_of,
    text_of,
)
from rlcourse.grading.limits import Limits
from rlcourse.grading.pipes import Watch, send_all
from rlcourse.grading.steps import Cell, ExamRequest, Incident, Transcript

START_SECONDS = 900.0  # for the server, which imports torch; one that dies is noticed at once
FORK_SECONDS = 600.0  # before any student code runs
REPLY_SECONDS = 30.0  # from the first byte of an answer to its last
MOST_LOSSES = 6  # processes that one submission may use up

GRADED, TIMED_OUT, DIED, OVER_MEMORY = "graded", "timed out", "died", "over memory"
MANY_THREADS = "too many threads"
FLAGS = {"late": TIMED_OUT, "memory": OVER_MEMORY, "threads": MANY_THREADS}


class Lost(Exception):
    """The process is gone or not to be trusted any further."""

    def __init__(self, status: str, detail: str = ""):
        super().__init__(detail)
        self.status, self.detail = status, detail


class Sandbox:
    """A warm server and the processes it forks; safe to use from several threads."""

    def __init__(
        self,
        library: Path,
        scratch: Path,
        rehearsal: Sequence[str] = (),
        hidden: Sequence[Path] = (),
        refuse: Sequence[str] = (),
        limits: Limits = Limits(),  # noqa: B008
        memory: int | None = None,
    ):
        """`library` is the students' copy; `scratch` an empty directory for this server alone.

        `rehearsal` are cells of the released notebook, which the server runs before all others.
        """
        self.limits = limits
        self.layers = isolation.Layers()  # what the server says, before any student code ran
        self.peak_memory: list[int] = []  # bytes, of each process that ended
        self._library = library
        script = library / "rehearsal.json"
        script.write_text(json.dumps(list(rehearsal)), "utf-8")
        script.chmod(0o644)  # another user reads it
        self._state = threading.Condition()
        self._sending = threading.Lock()
        self._ended: dict[int, dict] = {}
        self._spent: dict[int, float] = {}  # processor seconds, as the server said last
        self._number = 0
        self._alive = self._closed = False
        readable = (*visible.readable_paths(), str(library))
        covered = [str(p) for p in hidden if not any(_is_within(r, p) for r in readable)]
        self._wanted = isolation.Confinement(
            readable=readable,
            root=_directory(scratch / "root"),
            scratch=_directory(scratch / "scratch", 0o777),
            hidden=(*visible.hidden_paths(), *covered),
            refuse=tuple(refuse),
            cpu_seconds=math.ceil(limits.submission),
            **({} if memory is None else {"memory": memory}),
        )

    def __enter__(self) -> "Sandbox":
        self._start()
        return self

    def __exit__(self, *_) -> None:
        self.close()

    # The server

    def _start(self) -> None:
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        program = (
            "import sys, json; first, last = map(json.loads, sys.argv[1:3]); "
            "sys.path[:0] = first; sys.path += last; sys.argv = ['']; "
            "from rlcourse.grading.server import main; main()"
        )
        paths = [json.dumps([str(self._library)]), json.dumps(visible.package_paths())]
        with tempfile.TemporaryFile() as complaints, theirs:
            self._process = subprocess.Popen(
                [sys.executable, "-I", "-S", "-c", program, *paths],
                stdin=theirs.fileno(),
                stdout=subprocess.DEVNULL,
                stderr=complaints,
                env=_environment(self._wanted.scratch),
                cwd="/",
                start_new_session=True,
            )
            theirs.close()
            self._control = ours
            settings = {"confinement": asdict(self._wanted)}
            ours.settimeout(START_SECONDS)
            lost_patience = False
            try:
                ours.send(json.dumps(settings).encode())
                found = json.loads(ours.recv(1 << 16) or b"{}")
            except (OSError, ValueError) as error:
                found, lost_patience = {}, isinstance(error, TimeoutError)
            if not found.get("ready"):
                self._stop()
                complaints.seek(0)
                said = complaints.read().decode(errors="replace").strip().splitlines()
                late = f"it was not ready within {START_SECONDS:g} s" if lost_patience else ""
                reason = late or (said[-1] if said else "it gave no reason")
                raise UserError(f"the server for student code did not start: {reason}")
        self.layers = isolation.Layers(set(found["standing"]), dict(found["missing"]))
        ours.settimeout(None)
        self._alive = True
        threading.Thread(target=self._listen, args=(ours,), daemon=True).start()

    def _listen(self, control: socket.socket) -> None:
        while True:
            try:
                packet = control.recv(4096)
            except OSError:
                packet = b""
            with self._state:
                if not packet:
                    self._alive = False
                    self._state.notify_all()
                    return
                said = json.loads(packet)
                if "spent" in said:
                    self._spent[said["spent"]] = said["seconds"]
                else:
                    self._ended[said["ended"]] = said
                    self.peak_memory.append(said["memory"])
                self._state.notify_all()

    def close(self) -> None:
        """End the server and everything that it started, for good."""
        self._closed = True
        self._stop()

    def _stop(self) -> None:
        with suppress(OSError):
            self._control.shutdown(socket.SHUT_RDWR)
        self._control.close()
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()

    def _order(self, order: dict, descriptors: Sequence[int] = ()) -> None:
        with self._sending, suppress(OSError):  # its end is noticed by the listener
            socket.send_fds(self._control, [json.dumps(order).encode()], list(descriptors))

    # Processes, each with a number and a channel

    def open_process(self) -> tuple[int, socket.socket]:
        """Have the server fork a process for a submission."""
        with self._state:
            if self._closed:
                raise RuntimeError("the sandbox is closed")
            if not self._alive:
                self._stop()
                self._start()
            self._number += 1
            number = self._number
        ours, theirs = socket.socketpair()
        with theirs:
            self._order({"start": number}, [theirs.fileno()])
        return number, ours

    def kill(self, number: int) -> None:
        """End it, if it has not ended."""
        self._order({"kill": number})

    # A submission

    def run(self, steps: Sequence[Cell | ExamRequest]) -> Transcript:
        """Carry out the steps in order; whatever happens ends in the transcript."""
        transcript, left_out = Transcript(), set()
        end = time.monotonic() + self.limits.submission * self.limits.patience
        for _ in range(MOST_LOSSES):
            left = [s for s in steps if s.name not in left_out and s.name not in transcript.exams]
            fatal = self._attempt(left, transcript, end)
            if fatal is None or time.monotonic() > end:
                return transcript
            left_out.add(fatal)
        transcript.incidents.append(Incident(DIED, "the rest", "too many processes were lost"))
        return transcript

    def _attempt(self, steps, transcript: Transcript, end: float) -> str | None:
        """Run the steps in one process; the name of the step that it was lost in, or None."""
        number, ours = self.open_process()
        where = "start"
        try:
            with ours:
                protocol.receive(ours, time.monotonic() + FORK_SECONDS)
                try:
                    for where in self._converse(number, ours, steps, transcript, end):  # noqa: B007
                        pass  # the name of the last step is read below
                finally:
                    with suppress(OSError):
                        ours.shutdown(socket.SHUT_RDWR)  # ends the thread that sends
        except TimeoutError:
            lost = Lost(TIMED_OUT, "killed")
        except protocol.Closed:
            lost = self.how_it_ended(number)
        except protocol.BrokenMessage as error:
            lost = Lost(DIED, f"answered with something else: {error}")
        except Lost as error:
            lost = error
        else:
            return None
        finally:
            self.kill(number)
        if not any(i.where == where and i.status == lost.status for i in transcript.incidents):
            transcript.incidents.append(Incident(lost.status, where, lost.detail))
        return where

    def _converse(self, number, channel, steps, transcript, end: float) -> Iterator[str]:
        """Send the steps and take the answers; yields each step's name before its answer is due.

        A thread sends ahead, so that the process need not wait for us between two steps; and we
        only ever wait for an answer, so that a fatal step is always blamed for itself.
        """
        orders: SimpleQueue[bytes | None] = SimpleQueue()
        for step in steps:
            orders.put(self._order_of(step))
        deadline = end + self.limits.grace
        sender = (channel.dup(), iter(orders.get, None), deadline)
        threading.Thread(target=send_all, args=sender).start()
        try:
            for step in steps:
                yield step.name
                if time.monotonic() > end:
                    raise Lost(TIMED_OUT, f"{self.limits.submission:g} s for all of it")
                watch = Watch(self.limits, end, lambda: self.processor_seconds(number))

                def receive(watch=watch) -> dict:
                    watch.wait(channel)
                    return fields_of(protocol.receive(channel, time.monotonic() + REPLY_SECONDS))

                if isinstance(step, ExamRequest):
                    hear = self._answering(step, receive, orders)
                    self._note(step, self._sit(step, hear, transcript), transcript)
                else:
                    self._note(step, receive(), transcript)
        finally:
            orders.put(None)

    @staticmethod
    def _answering(step: ExamRequest, receive, orders: SimpleQueue) -> Callable[[], dict]:
        """What is received, once the calls of stand-ins that come before it are answered."""
        calls = itertools.count()

        def hear() -> dict:
            while "call" in (fields := receive()) and step.answer:
                orders.put(protocol.dumps(step.answer(fields, next(calls))))
            return fields

        return hear

    @staticmethod
    def _sit(step: ExamRequest, hear, transcript: Transcript) -> dict:
        """Take an exam's answers as they come, and say how it ended; none that came is lost."""
        exam, otherwise = ExamInParts(step.cases), LOST
        try:
            while not exam.add(part := hear()):
                pass
            otherwise = LATE
            return part
        finally:
            if exam.begun or otherwise is LATE:
                transcript.exams[step.name] = exam.answer(otherwise)

    def processor_seconds(self, number: int) -> float | None:
        """What a submission's process has used so far, where the system says."""
        with self._state:
            self._spent.pop(number, None)
        self._order({"time": number})
        with self._state:
            self._state.wait_for(lambda: number in self._spent or not self._alive, timeout=5)
            return self._spent.pop(number, None)

    def _order_of(self, step: Cell | ExamRequest) -> bytes:
        if isinstance(step, ExamRequest):
            return step.message
        order = {"do": "cell", "name": step.name, "source": step.source}
        return protocol.dumps({**order, **self.limits.seconds})

    @staticmethod
    def _note(step: Cell | ExamRequest, answer: dict, transcript: Transcript) -> None:
        if isinstance(step, Cell):
            cell = CellAnswer(text_of(answer, "printed"), failure_of(answer.get("error")))
            transcript.cells[step.name] = cell
        for flag, status in FLAGS.items():
            incident = Incident(status, step.name)
            if answer.get(flag) is True and incident not in transcript.incidents:
                transcript.incidents.append(incident)

    def how_it_ended(self, number: int) -> Lost:
        """What became of a process whose channel has closed."""
        with self._state:
            self._state.wait_for(lambda: number in self._ended or not self._alive, timeout=10)
            ended = self._ended.get(number)
        if ended is None:
            return Lost(DIED, "the server is gone")
        code = os.waitstatus_to_exitcode(ended["status"])
        if code >= 0:
            return Lost(DIED, f"exit {code}")
        if -code == signal.SIGXCPU:
            return Lost(TIMED_OUT, "processor time")
        return Lost(DIED, _signal_name(-code))


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:  # a real-time signal
        return f"signal {number}"


def _environment(scratch: str) -> dict[str, str]:
    """All that the untrusted side inherits."""
    own = {
        "PATH": "/usr/bin:/bin",
        "LANG": "C.UTF-8",
        "HOME": scratch,
        "TMPDIR": scratch,
        "MPLCONFIGDIR": scratch,
        "MPLBACKEND": "Agg",
        "RLCOURSE_HOME": scratch,
        "OMP_NUM_THREADS": "1",
        "MKL_NUM_THREADS": "1",
        "HF_HUB_OFFLINE": "1",
        "TOKENIZERS_PARALLELISM": "false",  # the server forks, and must have no threads
        "TQDM_DISABLE": "1",
    }
    loader = {k: v for k, v in os.environ.items() if k == "LD_LIBRARY_PATH"}
    return {**own, **loader}


def _directory(path: Path, mode: int = 0o755) -> str:
    path.mkdir(parents=True, exist_ok=True)
    path.chmod(mode)
    return str(path)


def _is_within(path: str, directory: Path) -> bool:
    return Path(path).is_relative_to(directory)
