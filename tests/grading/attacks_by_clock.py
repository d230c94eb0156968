"""Submissions that use up time, or get in their neighbors' way: locks, leases, caches, disks.

What gets in somebody's way prints LEAK where it works.
"""
# Each attack stands as compactly as it can.
# fmt: off

import classroom as room
from attacks import ATTACKS, TOTAL, Attack, Field, code

DEAF = """
import signal
signal.setitimer(signal.ITIMER_PROF, 0); signal.setitimer(signal.ITIMER_REAL, 0)
signal.signal(signal.SIGXCPU, lambda *_: None)
while True: pass
"""


def after_all(name: str, source: str, times: int = 1, status: str | None = "timed out") -> None:
    """A perfect notebook, with cells behind it that use up its time: what was earned is kept."""

    def write(field: Field, student: str) -> None:
        notebook = field.perfect
        for number in range(times):
            notebook = room.with_code(notebook, f"{source}\n# {number}", "applause")
        room.submit(field.course, student, notebook)

    ATTACKS.append(Attack(name, "clocks", write, TOTAL, status))


after_all("six cells that hear no alarm", DEAF, 6)
after_all("a cell that works in deafness, then dies", DEAF.replace("while True: pass", """
import os, time
end = time.process_time() + 1  # far from the 2 s at which the grader ends it
while time.process_time() < end: pass
os.abort()"""), status="died")
after_all("a name that is missing, and a second run", f"missing_name = 1\n{DEAF}")
after_all("clocks that stand still, and a loop", """
import time
for name in ("time", "monotonic", "perf_counter", "process_time", "thread_time"):
    setattr(time, name, lambda: 0.0)
while True:
    try:
        while True: pass
    except BaseException: pass
""")
after_all("a process that stops itself", """
import signal
signal.raise_signal(signal.SIGSTOP)
""", status=None)  # process 1 of a namespace cannot
code("a name that is missing in an answer, for a second run", "clocks", DEAF, 0.0, "timed out",
     score_function="def score_function(logits, action):\n    return not_there(logits)")

code("leases on libraries", "neighbors", """
import fcntl, os, sys
for module in list(sys.modules.values())[:200]:
    path = getattr(module, "__file__", None)
    if not path: continue
    for kind in (fcntl.F_RDLCK, fcntl.F_WRLCK):
        try: fcntl.fcntl(os.open(path, os.O_RDONLY), fcntl.F_SETLEASE, kind); print("LEAK", path)
        except OSError: pass
    try: fcntl.fcntl(os.open(os.path.dirname(path), os.O_RDONLY), fcntl.F_NOTIFY, 1); print("LEAK")
    except OSError: pass
""")
code("locks on libraries", "neighbors", """
import fcntl, os
file = os.open(os.__file__, os.O_RDONLY)
for how in (fcntl.LOCK_EX, fcntl.LOCK_SH):
    try: fcntl.flock(file, how | fcntl.LOCK_NB); print("LEAK a lock")
    except OSError: pass
try: fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB); print("LEAK a lock")
except OSError: pass
""")
code("the page cache, asked", "neighbors", """
import ctypes, mmap, os
file = os.open(os.__file__, os.O_RDONLY)
try: print("LEAK", os.preadv(file, [bytearray(4096)], 0, os.RWF_NOWAIT))
except OSError: pass
libc = ctypes.CDLL(None)
found = (ctypes.c_ubyte * 4)()
shown = mmap.mmap(file, 4096, prot=mmap.PROT_READ)
address = libc.mmap(None, 4096, 1, 2, file, 0)
if libc.syscall(27, ctypes.c_void_p(address), 4096, found) == 0: print("LEAK mincore")
if libc.syscall(451, file, found, found, 0) == 0: print("LEAK cachestat")
""")
code("the page cache, dropped", "neighbors", """
import mmap, os, sys
for module in list(sys.modules.values()):
    path = getattr(module, "__file__", None)
    if not path: continue
    file = os.open(path, os.O_RDONLY)
    try: os.posix_fadvise(file, 0, 0, os.POSIX_FADV_DONTNEED); print("LEAK dropped")
    except OSError: pass
    try: mmap.mmap(file, 0, prot=mmap.PROT_READ).madvise(21); print("LEAK paged out")
    except (OSError, ValueError): pass
    os.close(file)
""")
code("everybody's disks, flushed", "neighbors", """
import ctypes, os
libc = ctypes.CDLL(None, use_errno=True)
for number, arguments in ((162, ()), (306, (os.open(".", os.O_RDONLY),))):
    ctypes.set_errno(0); libc.syscall(number, *arguments)
    if ctypes.get_errno() == 0: print("LEAK flushed", number)
""")
code("a disk filled with files without names", "neighbors", """
import os
kept = []
try:
    while True:
        kept.append(os.open(".", os.O_TMPFILE | os.O_RDWR, 0o600))
        os.write(kept[-1], bytes(2**20))
except OSError: pass
if len(kept) > 130: print("LEAK", len(kept))
""")
code("pipes of a mebibyte each", "neighbors", """
import fcntl, os
for _ in range(60):
    try: fcntl.fcntl(os.pipe()[0], 1031, 2**20); print("LEAK a pipe")
    except OSError: break
""")
code("a higher priority than the neighbors'", "neighbors", """
import os
for raised in (lambda: os.nice(-5), lambda: os.setpriority(os.PRIO_PROCESS, 0, -5),
               lambda: os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(1))):
    try: raised(); print("LEAK")
    except OSError: pass
""")
code("the disks themselves, past the page cache", "neighbors", """
import fcntl, os
for flag in (os.O_DIRECT, os.O_DSYNC, os.O_SYNC):
    try: os.open(os.__file__, os.O_RDONLY | flag); print("LEAK", flag)
    except OSError: pass
try: fcntl.fcntl(os.open(os.__file__, os.O_RDONLY), fcntl.F_SETFL, os.O_DIRECT); print("LEAK")
except OSError: pass
""")
code("everybody's disks, flushed by way of a library", "neighbors", """
import ctypes
libc = ctypes.CDLL(None, use_errno=True)
for call in (libc.fsync, libc.fdatasync, lambda bad: libc.msync(bad, 4096, 4)):
    ctypes.set_errno(0); call(10**6)
    if ctypes.get_errno(): print("LEAK, the kernel was asked")
""")
code("a life after the server's", "neighbors", """
import ctypes
if ctypes.CDLL(None).prctl(1, 0, 0, 0, 0) == 0: print("LEAK")
""")
code("memory shared with whoever holds the same", "neighbors", """
import ctypes, mmap
if ctypes.CDLL(None).prctl(67, 1, 0, 0, 0) == 0: print("LEAK all of it")
try: mmap.mmap(-1, 2**20).madvise(12); print("LEAK")
except (OSError, ValueError): pass
""")
code("what the whole machine has one number of", "neighbors", """
import ctypes
libc, made = ctypes.CDLL(None), ctypes.create_string_buffer(8)
if libc.syscall(206, 1000, made) == 0: print("LEAK")
timers = 0
while timers < 5000 and libc.syscall(222, 1, None, ctypes.create_string_buffer(8)) == 0: timers += 1
if timers > 1000: print("LEAK", timers)
""")


# Honest: written in an unusual place or way
REST = TOTAL - room.POINTS["score_function"]
code("a breakpoint that was left in", "honest", "", REST, "graded", True,
     score_function="def score_function(logits, action):\n    breakpoint()\n    return logits")
code("what a cell left switched", "honest", """
import torch
torch.set_grad_enabled(False)
torch.set_default_dtype(torch.float64)
torch.use_deterministic_algorithms(True)
torch.set_printoptions(precision=1)
""", TOTAL, "graded", True, score_function=room.solution("score_function")
     .replace(":\n", ":\n    assert str(torch.ones(1) / 3) == 'tensor([0.3333])'\n", 1))
code("a compiled function", "honest", "", TOTAL, "graded", True,
     reinforce_loss="@torch.compile\n" + room.solution("reinforce_loss"))
# fmt: on
