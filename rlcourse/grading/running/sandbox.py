"""The trusted end of the pipe: start the untrusted server, have it fork and end processes.

A submission is a list of steps, cells and exams. ``Sandbox.run`` has them carried out, by a
``Conversation`` with confined processes, and returns what was answered. An ``Account`` keeps the
time that all processes of a submission have together, and ends what is left of them.
"""

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
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path

from rlcourse.errors import UserError
from rlcourse.grading.confinement import isolation, visible
from rlcourse.grading.running.limits import Limits
from rlcourse.grading.running.steps import (
    DIED,
    OVER_MEMORY,
    TIMED_OUT,
    Cell,
    ExamRequest,
    Lost,
    Transcript,
)

START_SECONDS = 900.0  # for the server, which imports torch; one that dies is noticed at once
END_SECONDS = 60.0  # for a process that was killed, on a busy machine


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
        """`library` is the students' copy, `scratch` an empty directory for this server alone.

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
            "from rlcourse.grading.untrusted.server import main; main()"
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
        self.layers = isolation.Layers.from_json(found)
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

    def open_process(self, seconds: float | None = None) -> tuple[int, socket.socket]:
        """Have the server fork a process for a submission, with that much processor time."""
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
            cpu = math.ceil(max(1, self.limits.submission if seconds is None else seconds))
            self._order({"start": number, "cpu": cpu}, [theirs.fileno()])
        return number, ours

    def end(self, number: int) -> float:
        """End it, if it has not ended; once it is dead, the processor seconds that it took."""
        self._order({"kill": number})
        with self._state:
            gone = lambda: number in self._ended or not self._alive  # noqa: E731
            self._state.wait_for(gone, timeout=END_SECONDS)
            return float(self._ended.pop(number, {}).get("seconds", 0.0))

    def run(self, steps: Sequence[Cell | ExamRequest]) -> Transcript:
        """Carry out the steps in order, within one budget; what happens is in the transcript."""
        from rlcourse.grading.running.conversation import Conversation  # imports torch

        with Account(self) as account:
            return Conversation(account).run(steps)

    def processor_seconds(self, number: int) -> float | None:
        """The processor time that a submission's process has used so far, if the system says."""
        with self._state:
            self._spent.pop(number, None)
        self._order({"time": number})
        with self._state:
            self._state.wait_for(lambda: number in self._spent or not self._alive, timeout=5)
            return self._spent.pop(number, None)

    def how_it_ended(self, number: int) -> Lost:
        """What became of a process whose channel has closed."""
        with self._state:
            self._state.wait_for(lambda: number in self._ended or not self._alive, timeout=10)
            ended = self._ended.get(number)
        if ended is None:
            return Lost(DIED, "the server is gone")
        if ended.get("full"):
            return Lost(OVER_MEMORY, "its files are too many or too large")
        if ended.get("late"):
            return Lost(TIMED_OUT, "processor time")
        code = os.waitstatus_to_exitcode(ended["status"])
        return Lost(DIED, f"exit {code}" if code >= 0 else _signal_name(-code))


class Account:
    """One submission's processes, and the time that all of them have together.

    Reruns, students' tests and processes that replace lost ones are on one account. When it is
    closed, no process of the submission is alive.
    """

    def __init__(self, sandbox: Sandbox):
        self._sandbox, self.limits = sandbox, sandbox.limits
        self.end = time.monotonic() + self.limits.clock
        self._used = 0.0  # processor seconds, of processes that have ended
        self._open: set[int] = set()

    def __enter__(self) -> "Account":
        return self

    def __exit__(self, *_) -> None:
        for number in list(self._open):
            self.close(number)

    def is_over(self) -> bool:
        """Whether nothing more may be started."""
        return self._used >= self.limits.submission or time.monotonic() >= self.end

    def open(self) -> tuple[int, socket.socket]:
        """A process with the remaining processor time. ``Lost`` if there is none."""
        if self.is_over():
            raise Lost(TIMED_OUT, "all of its time is used up")
        number, channel = self._sandbox.open_process(self.limits.submission - self._used)
        self._open.add(number)
        return number, channel

    def close(self, number: int, more: float = 0.0) -> None:
        """End a process of this submission; charge its time, and `more` that it cost the grader."""
        if number in self._open:
            self._open.discard(number)
            self._used += self._sandbox.end(number) + max(0.0, more)

    def processor_seconds(self, number: int) -> float | None:
        return self._sandbox.processor_seconds(number) if number in self._open else None

    def how_it_ended(self, number: int) -> Lost:
        return self._sandbox.how_it_ended(number)


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:  # a real-time signal
        return f"signal {number}"


def _environment(scratch: str) -> dict[str, str]:
    """The environment that the untrusted side inherits."""
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
