"""A job that ruins its process ends itself and is reported; the next one is done as usual."""

import faulthandler
import os
import signal
import socket
import sys
import time
from pathlib import Path

import pytest

from rlcourse.grading.confinement.channel import Channel
from rlcourse.grading.confinement.disposable import Bounds, Disposable, Lost, may_fork

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="needs Unix sockets")

BOUNDS = Bounds(cpu_seconds=2, seconds=30, memory=256 * 2**20)


class Trials:
    """Jobs that go wrong, by name."""

    def prepare(self, warm_up_keys) -> None:
        self.warm_up_keys = warm_up_keys

    def do(self, request: bytes, line):
        name = request.decode()
        if name == "loop":
            while True:
                pass
        elif name == "crash":
            faulthandler.disable()
            os.kill(os.getpid(), signal.SIGSEGV)
        elif name == "unnamed":
            os.kill(os.getpid(), 40)
        elif name == "exit":
            os._exit(3)
        elif name == "raise":
            raise ZeroDivisionError
        elif name == "hog":
            return len(bytearray(2 * 2**30))
        elif name == "much":
            return "x" * (300 * 2**20)
        elif name == "ask":
            Channel(line).tell({"what": 6})
            return Channel(line).hear()[0]
        return [name, self.warm_up_keys]


@pytest.fixture(scope="module", params=[True, False], ids=["forked", "started"])
def process(request):
    if request.param and not may_fork():
        pytest.skip("forking is not safe here")
    with Disposable(Trials(), BOUNDS, fork=request.param) as process:
        yield process


def lost(process, name: str) -> Lost:
    with pytest.raises(Lost) as raised:
        process.run(name.encode())
    assert process.run(b"next", warm_up_keys=7) == ["next", 7]
    return raised.value


def test_a_job_that_goes_well_gives_its_result_and_has_its_line(process):
    assert process.run(b"fine") == ["fine", None]
    ours, theirs = map(Channel, socket.socketpair())
    with ours, theirs:
        ours.tell(42)
        assert process.run(b"ask", line=theirs.stream) == 42
        assert ours.hear()[0] == {"what": 6}


def test_a_loop_is_ended_by_processor_time(process):
    assert lost(process, "loop").by_time


@pytest.mark.parametrize("name, number", [("crash", signal.SIGSEGV), ("unnamed", 40)])
def test_a_crash_is_told_by_its_signal(process, name, number):
    found = lost(process, name)
    assert found.signal == number and not found.by_time


@pytest.mark.parametrize("name", ["exit", "raise", "hog", "much"])
def test_other_ends_are_told_too(process, name):
    found = lost(process, name)
    assert found.signal is None and found.status != 0


@pytest.mark.skipif(not may_fork(), reason="forking is not safe here")
def test_it_ends_with_its_starter():
    reads, writes = os.pipe()
    starter = os.fork()
    if not starter:
        process = Disposable(Trials(), BOUNDS)
        os.write(writes, str(process._pid).encode())
        os.kill(os.getpid(), signal.SIGKILL)
    os.waitpid(starter, 0)
    pid = int(os.read(reads, 20))
    deadline = time.monotonic() + 60
    while os.path.exists(f"/proc/{pid}") and time.monotonic() < deadline:
        if Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z":
            break  # ended; whoever took it in has not asked yet
        time.sleep(0.05)
    else:
        assert not os.path.exists(f"/proc/{pid}")
