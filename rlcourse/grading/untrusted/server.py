"""The warm server on the untrusted side: it forks a confined process for every submission.

It is a separate program, started with an empty environment, and holds nothing secret: torch, the
students' copy of the library, and the means to fork. It talks to the grader over the socket that is
its standard input, in small JSON packets:

    {"start": 3, "cpu": 180}, with a socket attached
                                   fork, confine, run a submission over that socket
    {"kill": 3}                    end it now
    {"time": 3}                    say what it has used
    → {"spent": 3, "seconds": …}   processor seconds, of all its threads
    → {"ended": 3, "status": …, "memory": …, "seconds": …, "late": …, "full": …}
                                   it has ended, how (as ``waitpid`` says it), whether its processor
                                   time was over, and whether it wrote too much

When the grader is gone the socket closes, the server ends, and so does all it started.
"""

import contextlib
import gc
import json
import os
import select
import shutil
import signal
import socket
import sys
import time
import traceback
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from rlcourse.grading.confinement import isolation, syscalls

LARGEST_PACKET = 1 << 18
# Used if no file system of its own bounds what a submission writes
MOST_FILES = 1000
LOOK_SECONDS = 0.1  # between two looks at them


def main() -> None:
    """Configure from the first packet, confine, warm up, and serve until the grader is gone."""
    control = socket.socket(fileno=os.dup(0))
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    settings = json.loads(control.recv(LARGEST_PACKET))
    for key, value in settings["confinement"].items():
        settings["confinement"][key] = tuple(value) if isinstance(value, list) else value
    wanted = isolation.Confinement(**settings["confinement"])
    layers = isolation.Layers()
    _be_first_to_go()
    if sys.platform == "linux":
        isolation.enter(wanted, layers)
        _keep_from_tracing()
        isolation.prepare(wanted)
    warm_up(Path(sys.path[0]))
    found = _layers_of_a_fork(wanted, layers)
    os.dup2(os.open(os.devnull, os.O_WRONLY), 2)  # until here it told the grader what went wrong
    control.send(json.dumps({"ready": True, **found}).encode())
    with contextlib.suppress(OSError, ValueError):
        Server(control, wanted, layers).run()
    os._exit(0)


def _be_first_to_go() -> None:
    """Where memory ends, as in a small container, the system ends student code and not the judge,
    which then says so."""
    with contextlib.suppress(OSError):
        Path("/proc/self/oom_score_adj").write_text("1000")


def _keep_from_tracing() -> None:
    with contextlib.suppress(OSError):
        syscalls.be_undumpable()


def _layers_of_a_fork(wanted: isolation.Confinement, layers: isolation.Layers) -> dict:
    """The layers around a submission, tried before there is one."""
    if sys.platform != "linux":
        return {"standing": [], "missing": dict.fromkeys(isolation.LAYERS, f"on {sys.platform}")}
    mapped, (reads, writes) = layers.mapped(), os.pipe()
    pid = isolation.fork(layers)
    if not pid:
        try:
            isolation.confine(wanted, layers, mapped)
            os.write(writes, json.dumps(layers.as_json()).encode())
        except BaseException:
            traceback.print_exc()
        finally:
            os._exit(0)
    os.close(writes)
    os.waitpid(pid, 0)
    shutil.rmtree(f"{wanted.scratch}/submission", ignore_errors=True)
    with os.fdopen(reads, "rb") as pipe:
        return json.loads(pipe.read())


def warm_up(library: Path) -> None:
    """Do once what every submission would otherwise do again after the fork."""
    with contextlib.suppress(OSError):
        for fonts in library.glob("fontlist-*.json"):
            shutil.copy(fonts, os.environ["MPLCONFIGDIR"])
    import matplotlib

    matplotlib.use("Agg")
    import torch

    from rlcourse.grading.untrusted import worker

    torch.set_num_threads(1)
    leaf = torch.zeros(2, requires_grad=True)
    torch.optim.AdamW([leaf])  # imports torch._dynamo
    worker.rehearse(json.loads((library / "rehearsal.json").read_text("utf-8")))
    gc.collect()
    gc.freeze()


def is_full(scratch: str, wanted: isolation.Confinement) -> bool:
    """Whether a scratch directory holds more than `wanted` allows; it has no directories."""
    size = count = 0
    with contextlib.suppress(OSError), os.scandir(scratch) as entries:
        for entry in entries:
            with contextlib.suppress(OSError):
                size += entry.stat(follow_symlinks=False).st_blocks * 512
            count += 1
            if size > wanted.scratch_size or count > MOST_FILES:
                return True
    return False


def clock_of(pid: int) -> int:
    """The kernel's clock of a process's own processor time, as clock_getcpuclockid(3) says it."""
    return ~pid << 3 | 2


@dataclass
class Running:
    """A process of a submission: its number, its processor seconds, its scratch directory."""

    number: int
    cpu: int
    scratch: str
    full: bool = False


class Server:
    """Forks, kills and reaps; one process per submission that is under way."""

    def __init__(
        self, control: socket.socket, wanted: isolation.Confinement, layers: isolation.Layers
    ):
        self.control, self.wanted, self.layers = control, wanted, layers
        self.mapped = layers.mapped()
        self.running: dict[int, Running] = {}  # by process id
        self.wakeup, wakes = os.pipe()
        for end in (self.wakeup, wakes):
            os.set_blocking(end, False)
        signal.signal(signal.SIGCHLD, lambda *_: None)
        signal.set_wakeup_fd(wakes, warn_on_full_buffer=False)

    def run(self) -> None:
        unbounded = "mount" not in self.layers.standing
        while True:
            waiting: list[Any] = [self.control, self.wakeup]
            look = LOOK_SECONDS if unbounded and self.running else None
            ready, _, _ = select.select(waiting, [], [], look)
            if unbounded:
                self.look_after_files()
            if self.wakeup in ready:
                os.read(self.wakeup, 4096)
                self.reap()
            if self.control in ready:
                packet, attached, _, _ = socket.recv_fds(self.control, LARGEST_PACKET, 1)
                if not packet:
                    return
                self.obey(json.loads(packet), attached)

    def obey(self, order: dict, attached: list[int]) -> None:
        if "start" in order:
            scratch = f"{self.wanted.scratch}/submission-{order['start']}"
            started = Running(order["start"], order["cpu"], scratch)
            pid = isolation.fork(self.layers)
            if not pid:
                self.become_worker(attached[0], started)
            os.close(attached[0])
            self.running[pid] = started
        for pid, process in self.running.items():
            if process.number == order.get("kill"):
                self.kill(pid)
            if process.number == order.get("time"):
                with contextlib.suppress(OSError):
                    spent = {"spent": process.number, "seconds": time.clock_gettime(clock_of(pid))}
                    self.control.send(json.dumps(spent).encode())

    @staticmethod
    def kill(pid: int) -> None:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)

    def look_after_files(self) -> None:
        """Bound what a process writes, if no file system of its own does."""
        for pid, process in self.running.items():
            if not process.full and is_full(process.scratch, self.wanted):
                process.full = True
                self.kill(pid)

    def reap(self) -> None:
        while self.running:
            pid, status, usage = os.wait4(-1, os.WNOHANG)
            if not pid:
                return
            process = self.running.pop(pid, None)
            if process is None:
                continue
            seconds = usage.ru_utime + usage.ru_stime
            killed = os.WIFSIGNALED(status) and os.WTERMSIG(status) in (
                signal.SIGXCPU,  # process 1 of a namespace is deaf to it, and is killed
                signal.SIGKILL,
            )
            ended = {
                "ended": process.number,
                "status": status,
                "memory": usage.ru_maxrss * 1024,
                "seconds": round(seconds, 3),
                "late": killed and seconds >= process.cpu - 0.5,
                "full": process.full,
            }
            shutil.rmtree(process.scratch, ignore_errors=True)
            self.control.send(json.dumps(ended).encode())  # last, when nothing of it is left

    def become_worker(self, channel: int, started: Running) -> None:
        """In the child: never returns."""
        status = 70
        try:
            signal.set_wakeup_fd(-1)
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            os.setsid()
            os.dup2(channel, 3)
            os.closerange(4, 4096)
            if sys.platform == "linux":
                wanted = replace(self.wanted, cpu_seconds=started.cpu)
                isolation.confine(wanted, self.layers, self.mapped, started.scratch)
            from rlcourse.grading.untrusted import worker

            worker.serve(socket.socket(fileno=3))
            status = 0
        finally:
            os._exit(status)


if __name__ == "__main__":
    main()
