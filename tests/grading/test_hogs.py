"""A submission that dies oddly or takes more than its share is named, and no other one suffers."""

import os
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from rlcourse.exercises import all as all_exercises
from rlcourse.grading.running.library import write_library
from rlcourse.grading.running.limits import Limits
from rlcourse.grading.running.sandbox import Sandbox
from rlcourse.grading.running.steps import DIED, MANY_THREADS, OVER_MEMORY, Cell

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="the sandbox is Linux's")


@pytest.fixture(scope="module")
def library():
    with tempfile.TemporaryDirectory(prefix="rlcourse-test-") as directory:
        os.chmod(directory, 0o755)
        write_library(Path(directory, "library"), list(all_exercises())[:1])
        yield Path(directory, "library")


def test_death_by_a_signal_without_a_name_is_an_incident(library):
    """Without a PID namespace, in which process 1 ignores such signals."""
    limits = Limits(step=10)
    with Sandbox(library, library.parent / "signal", refuse=("pid",), limits=limits) as sandbox:
        steps = [Cell("fatal", "import signal\nsignal.raise_signal(40)"), Cell("next", "print(1)")]
        transcript = sandbox.run(steps)
    (incident,) = transcript.incidents
    assert (incident.status, incident.where, incident.detail) == (DIED, "fatal", "signal 40")
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
def test_threads_are_counted_for_each_submission_alone(library):
    """Each may have its share while another one has taken all that it can get, and is named."""
    limits = Limits(step=60)
    with Sandbox(library, library.parent / "threads", limits=limits) as sandbox:
        if "user" not in sandbox.layers.standing:
            pytest.skip("all submissions share this user")
        hog = [Cell("hog", START.replace("MOST", "5000")), Cell("wait", "time.sleep(20)")]
        modest = [Cell("modest", START.replace("MOST", "8"))]
        with ThreadPoolExecutor(2) as pool:
            hogging = pool.submit(sandbox.run, hog)
            while not sandbox.peak_memory and not hogging.done():
                neighbor = sandbox.run(modest)
                if neighbor.cells["modest"].printed != "8\n":
                    break
            told = hogging.result()
    assert neighbor.cells["modest"].printed == "8\n" and neighbor.incidents == []
    assert 16 < int(told.cells["hog"].printed) <= 64
    assert (told.incidents[0].status, told.incidents[0].where) == (MANY_THREADS, "hog")


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


def test_memory_is_bounded_however_it_is_taken(library):
    """What a process is born with comes on top; most of that it shares."""
    mebibytes = 256
    with Sandbox(library, library.parent / "memory", memory=mebibytes * 2**20,
                 limits=Limits(step=60)) as sandbox:  # fmt: skip
        transcript = sandbox.run([Cell("hog", GIVE_BACK), Cell("late", "x = bytearray(2**30)")])
    taken = int(transcript.cells["hog"].printed)
    assert mebibytes / 2 < taken <= mebibytes
    assert OVER_MEMORY in {incident.status for incident in transcript.incidents}
