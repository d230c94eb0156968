"""A submission that dies oddly or takes more than its share is named, and no other one suffers."""

import sys
import time

import classroom as room
import pytest

from rlcourse.checks.asking import wire
from rlcourse.grading.running.limits import Limits
from rlcourse.grading.running.sandbox import Account, Sandbox
from rlcourse.grading.running.steps import DIED, OVER_MEMORY, Cell

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="the sandbox is Linux's")


@pytest.mark.slow
def test_death_by_a_signal_without_a_name_is_an_incident(library):
    """Without a PID namespace, in which process 1 ignores such signals."""
    with Sandbox(library, library.parent / "signal", refuse=("pid",)) as sandbox:
        steps = [Cell("fatal", "import signal\nsignal.raise_signal(40)"), Cell("next", "print(1)")]
        transcript = room.run(sandbox, steps, Limits(step=10))
    (incident,) = transcript.incidents
    assert (incident.status, incident.where, incident.detail) == (
        DIED,
        "fatal",
        "Real-time signal 6",
    )
    assert transcript.cells["next"].printed == "1\n"


START = """
import threading, time
threading.stack_size(2**16)
count = 0
try:
    while count < MOST:
        threading.Thread(target=time.sleep, args=(1000,), daemon=True).start()
        count += 1
except RuntimeError: pass
print(count)
"""


@pytest.mark.slow
def test_threads_are_counted_for_each_submission_alone(sandbox):
    """Each may have its share while another one has taken all that it can get."""
    if "user" not in sandbox.layers.standing:
        pytest.skip("all submissions share this user")
    hog, modest = ([Cell("x", START.replace("MOST", most))] for most in ("5000", "8"))
    limits = Limits(step=60)
    with sandbox.line() as line:
        held = Account(line, limits)
        channel = held.open()
        channel.receive()
        order = {"do": "cell", "name": "x", "source": hog[0].source, **limits.seconds}
        channel.send(wire.dumps(order))
        told = wire.loads(channel.receive(time.monotonic() + 300))
        neighbor = room.run(sandbox, modest, limits)  # while the hog holds its threads
    assert neighbor.cells["x"].printed == "8\n" and neighbor.incidents == []
    assert 16 < int(told["printed"]) <= 64


GIVE_BACK = """
import ctypes, mmap, torch
libc = ctypes.CDLL(None)
libc.munmap.argtypes = libc.mmap.argtypes = None
hoard, freed = [], 0
piece = 2**24
try:
    while True:
        hoard.append(bytearray(piece))
except MemoryError: pass
for size in (2**22, 2**20):
    try:
        while True: hoard.append(mmap.mmap(-1, size)); hoard[-1].write(b"x" * size)
    except (OSError, ValueError, MemoryError): pass
print(sum(map(len, hoard)) // 2**20)
"""


@pytest.mark.slow
def test_memory_is_bounded_however_it_is_taken(library):
    """What a process is born with comes on top; most of that it shares."""
    mebibytes = 256
    cells = [Cell("hog", GIVE_BACK), Cell("late", "x = bytearray(2**30)")]
    with Sandbox(library, library.parent / "memory", memory=mebibytes * 2**20) as sandbox:
        transcript = room.run(sandbox, cells, Limits(step=60))
    taken = int(transcript.cells["hog"].printed)
    assert mebibytes / 2 < taken <= mebibytes
    assert OVER_MEMORY in {incident.status for incident in transcript.incidents}
