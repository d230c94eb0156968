"""The trusted end: start the untrusted server, and give each submission a line to it.

Over its line a submission's reader has processes forked and ended, one at a time; its ``Account``
keeps the time that all of them have together. When the line is hung up, nothing of it is alive.
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
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict
from pathlib import Path

from rlcourse.errors import UserError
from rlcourse.grading.confinement import isolation, visible
from rlcourse.grading.confinement.channel import Channel, Closed
from rlcourse.grading.confinement.disposable import Bounds
from rlcourse.grading.confinement.disposable import Lost as LostReader
from rlcourse.grading.rejected import Rejected
from rlcourse.grading.running.limits import Limits
from rlcourse.grading.running.steps import DIED, OVER_MEMORY, TIMED_OUT, Lost

START_SECONDS = 900.0  # for the server, which imports torch; one that dies is noticed at once
END_SECONDS = 60.0  # for a process that was killed, on a busy machine
READING, SLOWLY = 60.0, 10  # processor seconds to take apart and judge; on the clock, times that


class Sandbox:
    """A warm server and what it forks; safe to use from several threads."""

    def __init__(
        self,
        library: Path,
        scratch: Path,
        rehearsal: Sequence[str] = (),
        hidden: Sequence[Path] = (),
        refuse: Sequence[str] = (),
        memory: int | None = None,
    ):
        """`library` is the students' copy, `scratch` an empty directory for this server alone.

        `rehearsal` are cells of the released notebook, which the server runs before all others.
        """
        self.layers = isolation.Layers()  # what the server says, before any student code ran
        self._library = library
        script = library / "rehearsal.json"
        script.write_text(json.dumps(list(rehearsal)), "utf-8")
        script.chmod(0o644)  # another user reads it
        self._lock = threading.Lock()
        self._closed = False
        readable = (*visible.readable_paths(), str(library))
        covered = [str(p) for p in hidden if not any(Path(r).is_relative_to(p) for r in readable)]
        self._wanted = isolation.Confinement(
            readable=readable,
            root=_directory(scratch / "root"),
            scratch=_directory(scratch / "scratch", 0o777),
            hidden=(*visible.hidden_paths(), *covered),
            refuse=tuple(refuse),
            **({} if memory is None else {"memory": memory}),
        )

    def __enter__(self) -> "Sandbox":
        self._start()
        return self

    def __exit__(self, *_) -> None:
        self.close()

    def _start(self) -> None:
        ours, theirs = socket.socketpair()
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
            self._control = Channel(ours)
            found, reason = None, f"it was not ready within {START_SECONDS:g} s"
            with suppress(Closed, TimeoutError, ValueError):
                self._control.tell(asdict(self._wanted))
                reason = "it gave no reason"
                found, _ = self._control.hear(START_SECONDS)
            if not found:
                self._stop()
                complaints.seek(0)
                said = complaints.read().decode(errors="replace").strip().splitlines()
                reason = said[-1] if said else reason
                raise UserError(f"the server for student code did not start: {reason}")
        self.layers = isolation.Layers.from_json(found)

    def close(self) -> None:
        """End the server and everything that it started, for good."""
        self._closed = True
        self._stop()

    def _stop(self) -> None:
        with suppress(OSError):
            self._control.stream.shutdown(socket.SHUT_RDWR)
        self._control.stream.close()
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()

    @contextmanager
    def line(self) -> Iterator[socket.socket]:
        """A submission's line to the server. Behind it, nothing of the submission is alive."""
        ours, theirs = socket.socketpair()
        with ours, theirs:
            for _ in range(2):
                with self._lock, suppress(Closed):
                    if self._closed:
                        raise RuntimeError("the sandbox is closed")
                    if self._process.poll() is not None:
                        self._stop()
                        self._start()
                    self._control.tell("line", descriptors=(theirs.fileno(),))
                    break
            theirs.close()
            try:
                yield ours
            finally:
                with suppress(OSError):
                    ours.shutdown(socket.SHUT_WR)
                    ours.settimeout(END_SECONDS)
                    while ours.recv(1 << 16):
                        pass  # until the server hangs up, too


class Account:
    """One submission's processes, of which there is one at a time, and the time that all of them
    have together: reruns, students' tests and processes that replace lost ones."""

    def __init__(self, line: socket.socket, limits: Limits):
        self._line, self.limits = Channel(line), limits
        self.end = time.monotonic() + limits.clock
        self.used = 0.0  # processor seconds, of processes that have ended
        self._open = False
        self._ended: dict | None = None  # what the server said of the process, once it has ended

    def is_over(self) -> bool:
        """Whether nothing more may be started."""
        return self.used >= self.limits.submission or time.monotonic() >= self.end

    def open(self) -> Channel:
        """A process with the remaining processor time. ``Lost`` if there is none."""
        if self.is_over():
            raise Lost(TIMED_OUT, "all of its time is used up")
        ours, theirs = socket.socketpair()
        cpu = math.ceil(max(1, self.limits.submission - self.used))
        with theirs:
            self._ask({"start": cpu}, theirs)
        self._open, self._ended = True, None
        return Channel(ours)

    def close(self, more: float = 0.0) -> None:
        """End the process; charge its time, and `more` that it cost the grader."""
        if self._open:
            self._open = False
            self._ask({"kill": True})
            self.used += self._hear("ended", END_SECONDS).get("seconds", 0.0) + max(0.0, more)

    def processor_seconds(self) -> float | None:
        """What the process has used so far, if the system says."""
        self._ask({"time": True})
        return self._hear("spent", 5.0).get("spent")

    def how_it_ended(self) -> Lost:
        """What became of a process whose channel has closed."""
        ended = self._hear("ended", 10.0)
        if not ended:
            return Lost(DIED, "the server is gone")
        if ended["full"]:
            return Lost(OVER_MEMORY, "its files are too many or too large")
        if ended["late"]:
            return Lost(TIMED_OUT, "processor time")
        code = os.waitstatus_to_exitcode(ended["status"])
        return Lost(DIED, f"exit {code}" if code >= 0 else str(signal.strsignal(-code)))

    def _ask(self, order: dict, process: socket.socket | None = None) -> None:
        with suppress(Closed):  # noticed by whoever waits for the answer
            self._line.tell(order, descriptors=(process.fileno(),) if process else ())

    def _hear(self, wanted: str, seconds: float) -> dict:
        """The server's answer of that kind; nothing if it is gone or says nothing in time."""
        with suppress(Closed, TimeoutError):
            while not (wanted == "ended" and self._ended):
                said, _ = self._line.hear(seconds)
                if "ended" in said:
                    self._ended = said
                if wanted in said:
                    return said
            return self._ended
        return {}


def reading_bounds(limits: Limits) -> Bounds:
    """What it may take to read a submission: more, by far, than the submission itself may, so that
    a submission that exceeds it is reported and keeps what it earned."""
    return Bounds(
        cpu_seconds=math.ceil(READING + limits.submission),
        seconds=SLOWLY * READING + limits.clock,
    )


def why_unread(lost: LostReader) -> Rejected:
    """Why a submission is not graded whose reader was lost."""
    if lost.by_time:
        return Rejected(TIMED_OUT, "it takes too long to read")
    how = f"signal {lost.signal}" if lost.signal else "an exit"
    if lost.status is not None and os.WIFEXITED(lost.status):
        how = f"exit {os.WEXITSTATUS(lost.status)}"
    return Rejected(DIED, f"the process that was reading it ended with {how}")


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
        "TORCHDYNAMO_DISABLE": "1",  # nothing can be compiled; a function stays as it is
    }
    loader = {k: v for k, v in os.environ.items() if k == "LD_LIBRARY_PATH"}
    return {**own, **loader}


def _directory(path: Path, mode: int = 0o755) -> str:
    path.mkdir(parents=True, exist_ok=True)
    path.chmod(mode)
    return str(path)
