"""Processes that may be lost: all code that reads a student's submission runs in one of them.

A warm process waits for work: a fork of its starter, or a program of its own where the starter has
threads. For each job it forks one that has limits on processor time, time and memory, does that job
and ends; where forking is not safe, it does the job itself, and another one takes its place when it
is lost. The job asks its starter for what it may not do itself.
"""

import gc
import json
import os
import pickle
import resource
import signal
import socket
import struct
import subprocess
import sys
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Protocol

LARGEST_FRAME = 256 * 2**20
_LENGTH = struct.Struct("<I")


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


class Closed(Exception):
    """The other end of a channel is gone."""


@dataclass(frozen=True)
class Bounds:
    """What one job may use."""

    cpu_seconds: int = 60
    seconds: float = 600.0
    memory: int = 1024 * 2**20  # bytes beyond what the warm process has mapped


class Work(Protocol):
    """The work to do. `prepare` runs in the warm process, before the job begins."""

    def prepare(self, warm_up_keys: Any) -> None: ...

    def do(self, request: bytes, ask: "Channel") -> Any: ...


class Channel:
    """Frames of bytes or JSON over a stream socket, with descriptors attached on request."""

    def __init__(self, stream: socket.socket):
        self.stream = stream

    def send(self, data: bytes) -> None:
        try:
            self.stream.sendall(_LENGTH.pack(len(data)) + data)
        except OSError:
            raise Closed from None

    def receive(self) -> bytes:
        (size,) = _LENGTH.unpack(self._exactly(_LENGTH.size))
        if size > LARGEST_FRAME:
            raise Closed
        return self._exactly(size)

    def _exactly(self, size: int) -> bytes:
        found = bytearray()
        while len(found) < size:
            try:
                part = self.stream.recv(min(size - len(found), 1 << 20))
            except OSError:
                raise Closed from None
            if not part:
                raise Closed
            found += part
        return bytes(found)

    def tell(self, message: Any) -> None:
        self.send(json.dumps(message).encode())

    def hear(self) -> Any:
        return json.loads(self.receive())

    def pass_on(self, descriptor: int) -> None:
        try:
            socket.send_fds(self.stream, [b"d"], [descriptor])
        except OSError:
            raise Closed from None

    def take(self) -> int:
        try:
            _, found, _, _ = socket.recv_fds(self.stream, 1, 1)
        except OSError:
            raise Closed from None
        if not found:
            raise Closed
        return found[0]


def may_fork() -> bool:
    """Whether this process can continue in a fork; one in which torch has found a GPU cannot."""
    torch = sys.modules.get("torch")
    return sys.platform == "linux" and not (torch and torch.cuda.is_available())


class Disposable:
    """The starter's end of one warm process; for one thread at a time.

    With `fork` each job is a fork of the warm process. A starter with `threads` cannot be forked,
    so then the warm process is a program of its own.
    """

    def __init__(
        self,
        work: Work,
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
            self._control.send(pickle.dumps(self._job))

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
        self,
        request: bytes,
        answer: Callable[[Any, Channel], None] = lambda question, channel: None,
        warm_up_keys: Any = None,
    ) -> Any:
        """The work's result for `request`; `answer` gets its questions. ``Lost`` if it dies."""
        ours, theirs = socket.socketpair()
        with ours:
            try:
                with theirs:
                    self._control.tell(warm_up_keys)
                    self._control.pass_on(theirs.fileno())
                channel = Channel(ours)
                channel.send(request)
                while "done" not in (said := channel.hear()):
                    answer(said, channel)
            except (Closed, ValueError):
                said = None
        try:
            status = self._control.hear()
        except Closed:
            status = self._revive()
        if said is None:
            raise Lost(status)
        return said["done"]

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
    _live(control, *pickle.loads(Channel(control).receive()))


def _live(control: socket.socket, work: Work, bounds: Bounds, fork: bool) -> None:
    """Serve until the starter is gone; never returns."""
    try:
        signal.signal(signal.SIGINT, signal.SIG_IGN)  # the starter gets it, too, and ends us
        _die_with_starter()
        channel = Channel(control)
        while True:
            work.prepare(channel.hear())
            gc.freeze()  # a collection in the fork would write to, and so copy, all there is
            with socket.socket(fileno=channel.take()) as job:
                status = _in_a_fork(job, work, bounds) if fork else _here(job, work, bounds)
            channel.tell(status)
    except Closed:
        os._exit(0)
    finally:
        os._exit(70)


def _die_with_starter() -> None:
    if sys.platform == "linux":
        from rlcourse.grading.confinement import syscalls

        with suppress(OSError):
            syscalls.die_with_parent()


def _in_a_fork(job: socket.socket, work: Work, bounds: Bounds) -> int:
    child = os.fork()
    if not child:
        try:
            _die_with_starter()
            _here(job, work, bounds)
            os._exit(0)
        finally:
            os._exit(70)
    return os.waitpid(child, 0)[1]


def _here(job: socket.socket, work: Work, bounds: Bounds) -> int:
    _limit(bounds)
    channel = Channel(job)
    channel.tell({"done": work.do(channel.receive(), channel)})
    return 0


def _limit(bounds: Bounds) -> None:
    """Bound this process from here on; the system ends it when its time is over."""
    signal.signal(signal.SIGALRM, signal.SIG_DFL)
    signal.setitimer(signal.ITIMER_REAL, bounds.seconds)
    used = resource.getrusage(resource.RUSAGE_SELF)
    seconds = int(used.ru_utime + used.ru_stime) + bounds.cpu_seconds
    for kind, most in (
        (resource.RLIMIT_CPU, seconds),
        (resource.RLIMIT_AS, _mapped() + bounds.memory),
        (resource.RLIMIT_CORE, 0),
    ):
        hard = resource.getrlimit(kind)[1]
        with suppress(OSError, ValueError):
            most = most if hard == resource.RLIM_INFINITY else min(most, hard)
            resource.setrlimit(kind, (most, hard))


def _mapped() -> int:
    from rlcourse.grading.confinement.isolation import Layers

    return Layers().mapped()
