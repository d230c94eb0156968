"""Processes that may be lost: all code that reads a student's submission runs in one of them.

A warm process waits for work: a fork of its starter, or a program of its own where the starter has
threads. For each job it forks one that has limits on processor time, time and memory, does that job
and ends; where forking is not safe, it does the job itself, and another one takes its place when it
is lost.
"""

import gc
import os
import pickle
import resource
import signal
import socket
import subprocess
import sys
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from rlcourse.grading.confinement.channel import Channel, Closed, TooLarge
from rlcourse.grading.confinement.isolation import Layers, bound


class Lost(Exception):
    """The job ended its process; `status` is that of ``waitpid``, None if it is unknown."""

    def __init__(self, status: int | None = None):
        super().__init__(status)
        self.status = status

    @property
    def signal(self) -> int | None:
        if self.status is None or not os.WIFSIGNALED(self.status):
            return None
        return os.WTERMSIG(self.status)

    @property
    def by_time(self) -> bool:
        return self.signal in (signal.SIGXCPU, signal.SIGALRM)


@dataclass(frozen=True)
class Bounds:
    """What one job may use."""

    cpu_seconds: int = 60
    seconds: float = 600.0
    memory: int = 1024 * 2**20  # bytes beyond what the warm process has mapped


def may_fork() -> bool:
    """Whether this process can continue in a fork; one in which torch has found a GPU cannot."""
    torch = sys.modules.get("torch")
    return sys.platform == "linux" and not (torch and torch.cuda.is_available())


class Disposable:
    """The starter's end of one warm process; for one thread at a time.

    `work.prepare(warm_up_keys)` runs in the warm process, before a job begins, and
    `work.do(request, line)` in the job; the line is a socket that it was given for itself. With
    `fork` each job is a fork of the warm process. A starter with `threads` cannot be forked,
    so then the warm process is a program of its own.
    """

    def __init__(
        self,
        work: Any,
        bounds: Bounds = Bounds(),
        fork: bool | None = None,
        threads: bool = False,
    ):
        fork = may_fork() if fork is None else fork
        self._job = work, bounds, fork
        self._start(fork and not threads)

    def _start(self, fork: bool) -> None:
        ours, theirs = socket.socketpair()
        self._program: subprocess.Popen | None = None
        if fork:
            self._pid = os.fork()
            if not self._pid:
                ours.close()
                _live(theirs, *self._job)
        else:
            program = "from rlcourse.grading.confinement.disposable import main; main()"
            command = [sys.executable, "-c", program]
            path = {"PYTHONPATH": os.pathsep.join(sys.path)}
            environment = {**os.environ, **path, "OMP_NUM_THREADS": "1"}
            self._program = subprocess.Popen(command, stdin=theirs.fileno(), env=environment)
        theirs.close()
        self._control = Channel(ours)
        if self._program:
            self._control.tell(None, pickle.dumps(self._job))

    def __enter__(self) -> "Disposable":
        return self

    def __exit__(self, *_) -> None:
        self.close()

    def close(self) -> None:
        """End the warm process."""
        self._control.stream.close()
        if self._program:
            self._program.kill()
            self._program.wait()
        else:
            with suppress(OSError):
                os.kill(self._pid, signal.SIGKILL)
                os.waitpid(self._pid, 0)

    def run(
        self, request: bytes, warm_up_keys: Any = None, line: socket.socket | None = None
    ) -> Any:
        """The work's result for `request`; the job gets the `line`. ``Lost`` if it dies."""
        ours, theirs = socket.socketpair()
        with ours:
            try:
                with theirs:
                    passed = [end.fileno() for end in (theirs, line) if end]
                    self._control.tell(warm_up_keys, descriptors=tuple(passed))
                channel = Channel(ours)
                channel.tell(None, request)
                said: tuple | None = channel.hear()
            except (Closed, TooLarge, ValueError):
                said = None
        try:
            status = self._control.hear()[0]
        except Closed:
            status = self._revive()
        if said is None:
            raise Lost(status)
        return said[0]

    def _revive(self) -> int | None:
        """Start another process for one that is gone; forking is over once there are threads."""
        self.close()
        status = None if not self._program else self._program.returncode
        self._start(fork=False)
        return -status if status is not None and status < 0 else None


# The other end


def main() -> None:
    """Be a warm process that was started, not forked; the work arrives first."""
    control = socket.socket(fileno=os.dup(0))
    _live(control, *pickle.loads(Channel(control).hear()[1]))


def _live(control: socket.socket, work: Any, bounds: Bounds, fork: bool) -> None:
    """Serve until the starter is gone; never returns."""
    try:
        signal.signal(signal.SIGINT, signal.SIG_IGN)  # the starter gets it, too, and ends us
        _die_with_starter()
        channel = Channel(control)
        while True:
            work.prepare(channel.hear()[0])
            gc.freeze()  # a collection in the fork would write to, and so copy, all there is
            ends = [socket.socket(fileno=passed) for passed in channel.take(2)]
            child = os.fork() if fork else 0
            if not child:
                _do(work, bounds, Channel(ends[0]), ends[1] if ends[1:] else None)
                if fork:
                    os._exit(0)
            for end in ends:
                end.close()
            channel.tell(os.waitpid(child, 0)[1] if fork else 0)
    except Closed:
        os._exit(0)
    finally:
        os._exit(70)


def _do(work: Any, bounds: Bounds, job: Channel, line: socket.socket | None) -> None:
    try:
        _die_with_starter()
        _limit(bounds)
        job.tell(work.do(job.hear()[1], line))
    except Closed:
        os._exit(70)


def _die_with_starter() -> None:
    if sys.platform == "linux":
        from rlcourse.grading.confinement import syscalls

        with suppress(OSError):
            syscalls.die_with_parent()


def _limit(bounds: Bounds) -> None:
    """Bound this process from here on; the system ends it when its time is over."""
    signal.signal(signal.SIGALRM, signal.SIG_DFL)
    signal.setitimer(signal.ITIMER_REAL, bounds.seconds)
    used = resource.getrusage(resource.RUSAGE_SELF)
    with suppress(OSError, ValueError):
        bound(resource.RLIMIT_CPU, int(used.ru_utime + used.ru_stime) + bounds.cpu_seconds, more=5)
        bound(resource.RLIMIT_AS, Layers().mapped() + bounds.memory)
        bound(resource.RLIMIT_CORE, 0)
