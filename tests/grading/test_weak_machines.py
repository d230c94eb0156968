"""Missing layers: what is refused, what the message says, and what still cannot be done."""

import os
import subprocess
import sys
import tempfile
from pathlib import Path

import classroom as room
import pytest

from rlcourse.errors import UserError
from rlcourse.exercises import all as all_exercises
from rlcourse.grading.confinement import isolation
from rlcourse.grading.engine import Options, grade
from rlcourse.grading.running.library import write_library
from rlcourse.grading.running.limits import Limits
from rlcourse.grading.running.sandbox import Sandbox
from rlcourse.grading.running.steps import Cell

NO_FILES = ("mount", "landlock")
NO_PROCESSES = ("pid", "seccomp")


@pytest.mark.slow
@pytest.mark.parametrize("off", [NO_FILES, NO_PROCESSES])
def test_nothing_is_graded_where_files_or_processes_are_in_reach(course, off):
    room.submit(course, "ada", room.solved(course, ["score_function"]))
    with pytest.raises(UserError, match="nothing was graded") as error:
        grade("02", course=course, options=Options(layers_off=off))
    said = str(error.value)
    assert all(name in said and isolation.ADVICE[name] in said for name in off)
    assert "--allow-weak-isolation" in said and "\n" not in said
    assert not list((course / "autograded").glob("[!.]*"))  # a lock at most


@pytest.mark.slow
def test_who_trusts_every_submission_says_so_and_is_warned(course):
    room.submit(course, "ada", room.solved(course, ["score_function"]))
    warnings: list[str] = []
    options = Options(layers_off=tuple(isolation.LAYERS), allow_weak_isolation=True)
    report = grade("02", course=course, options=options, on_warning=warnings.append)
    assert report.rows[0].score == 2.0
    assert len(warnings) == 1 and "NOT FULLY ISOLATED" in warnings[0]


# What an owner may do to files that Landlock guards, and to processes of the same user

REACH = """
import ctypes, fcntl, os, socket
libc = ctypes.CDLL(None, use_errno=True)
def attempt(name, action):
    try:
        if action() is not False: print("did", name)
    except BaseException: pass
attempt("chmod", lambda: os.chmod("MINE", 0o600))
attempt("chown", lambda: os.chown("MINE", os.getuid(), -1))
attempt("lchown", lambda: os.lchown("MINE", os.getuid(), -1))
attempt("utime", lambda: os.utime("MINE", (1, 1)))
attempt("setxattr", lambda: os.setxattr("MINE", "user.a", b"b"))
attempt("removexattr", lambda: os.removexattr("MINE", "user.kept"))
attempt("truncate", lambda: os.truncate("MINE", 0))
attempt("chmod by descriptor", lambda: os.fchmod(os.open("MINE", os.O_RDONLY), 0o600))
attempt("chmod of a path descriptor", lambda: os.chmod(
    f"/proc/self/fd/{os.open('MINE', os.O_PATH)}", 0o600))
attempt("fchmodat2", lambda: libc.syscall(452, -100, b"MINE", 0o600, 0) == 0)
attempt("schedule", lambda: os.sched_setaffinity(PID, {0}))
attempt("schedule by policy", lambda: os.sched_setscheduler(PID, os.SCHED_BATCH,
                                                            os.sched_param(0)))
attempt("schedule by parameter", lambda: os.sched_setparam(PID, os.sched_param(0)))
attempt("nice", lambda: os.setpriority(os.PRIO_PROCESS, PID, 19))
attempt("ioprio", lambda: libc.syscall(251, 1, PID, (2 << 13) | 7) == 0)
attempt("setpgid", lambda: os.setpgid(PID, 0))
reads, writes = os.pipe()
attempt("own a pipe", lambda: fcntl.fcntl(reads, fcntl.F_SETOWN, PID))
attempt("choose its signal", lambda: fcntl.fcntl(reads, 10, 9))
attempt("own by ioctl", lambda: fcntl.ioctl(3, 0x8901, (PID).to_bytes(4, "little")))
attempt("group by ioctl", lambda: fcntl.ioctl(3, 0x8902, (PID).to_bytes(4, "little")))
readable = os.open(__import__("rlcourse").__file__, os.O_RDONLY)
attempt("lease", lambda: fcntl.fcntl(readable, 1024, fcntl.F_RDLCK))
attempt("signal", lambda: os.kill(PID, 0))
attempt("limit", lambda: libc.prlimit(PID, 7, 0, 0) == 0)
attempt("read", lambda: open("MINE").read())
attempt("work", lambda: fcntl.fcntl(reads, fcntl.F_GETFD))
attempt("write a file", lambda: open("own", "w").write("x"))
"""


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="there are no layers")
def test_what_others_own_stays_as_it_is_without_the_mount_and_pid_layers():
    with tempfile.TemporaryDirectory(prefix="rlcourse-test-") as name:
        directory = Path(name)
        directory.chmod(0o777)
        write_library(directory / "library", [e for e in all_exercises() if e.lesson >= "02"])
        mine = directory / "mine"
        mine.write_text("HIDDEN-TREASURE")
        os.utime(mine, (10**9, 10**9))
        with subprocess.Popen(["sleep", "100"]) as sleeper:
            source = REACH.replace("MINE", str(mine)).replace("PID", str(sleeper.pid))
            off = ("user", "pid", "mount", "network")
            with Sandbox(directory / "library", directory / "server", refuse=off) as sandbox:
                if not {"landlock", "seccomp"} <= sandbox.layers.standing:
                    pytest.skip(f"missing here: {sandbox.layers.missing}")
                answer = room.run(sandbox, [Cell("reach", source)], Limits(step=20)).cells["reach"]
            sleeper.kill()
        assert answer.error is None
        assert set(answer.printed.splitlines()) == {"did work", "did write a file"}
        assert (mine.read_text(), mine.stat().st_mtime) == ("HIDDEN-TREASURE", 10**9)


FILL = """
count = 0
while True:
    with open(f"file{count}", "wb") as file: file.write(bytes(SIZE))
    count += 1
"""


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="the sandbox is Linux's")
@pytest.mark.parametrize("size", [2**20, 0], ids=["large files", "many files"])
def test_without_mount_a_disk_is_not_filled_and_a_file_can_be_written(size, library):
    cells = [
        Cell("honest", "open('own.py', 'w').write('x = 3')\nimport own\nprint(own.x)"),
        Cell("fill", FILL.replace("SIZE", str(size))),
        Cell("next", "print('on')"),
    ]
    server = library.parent / f"without-mount-{size}"
    with Sandbox(library, server, refuse=("mount",)) as sandbox:
        if "landlock" not in sandbox.layers.standing:
            pytest.skip("nothing is graded here")
        transcript = room.run(sandbox, cells)
        left = [path.name for path in (server / "scratch").glob("submission*")]
    assert transcript.cells["honest"].printed == "3\n" and left == []
    (incident,) = transcript.incidents
    assert (incident.status, incident.where) == ("over memory", "fill")
    assert "files" in incident.detail and transcript.cells["next"].printed == "on\n"
