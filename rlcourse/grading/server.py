"""The warm server on the untrusted side: it forks a confined process for every submission.

It is a program of its own, started with an empty environment, and holds nothing secret: torch, the
students' copy of the library, and the means to fork. It talks to the grader over the socket that is
its standard input, in small JSON packets:

    {"start": 3}, with a socket attached     fork, confine, run a submission over that socket
    {"kill": 3}                              end it now
    {"time": 3}                              say what it has used
    → {"spent": 3, "seconds": …}             processor seconds, of all its threads
    → {"ended": 3, "status": …, "memory": …} it has ended, and how (as ``waitpid`` says it)

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
from pathlib import Path
from typing import Any

from rlcourse.grading import isolation, syscalls

LARGEST_PACKET = 1 << 18


def main() -> None:
    """Configure from the first packet, confine, warm up, and serve until the grader is gone."""
    control = socket.socket(fileno=os.dup(0))
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    settings = json.loads(control.recv(LARGEST_PACKET))
    for key, value in settings["confinement"].items():
        settings["confinement"][key] = tuple(value) if isinstance(value, list) else value
    wanted = isolation.Confinement(**settings["confinement"])
    layers = isolation.Layers()
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


def _keep_from_tracing() -> None:
    with contextlib.suppress(OSError):
        syscalls.be_undumpable()


def _layers_of_a_fork(wanted: isolation.Confinement, layers: isolation.Layers) -> dict:
    """Which layers stand around a submission, tried before there is one."""
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

    from rlcourse.grading import worker

    torch.set_num_threads(1)
    leaf = torch.zeros(2, requires_grad=True)
    torch.optim.AdamW([leaf])  # imports torch._dynamo
    worker.rehearse(json.loads((library / "rehearsal.json").read_text("utf-8")))
    gc.collect()
    gc.freeze()


def clock_of(pid: int) -> int:
    """The kernel's clock of a process's own processor time, as clock_getcpuclockid(3) says it."""
    return ~pid << 3 | 2


class Server:
    """Forks, kills and reaps; one process per submission that is under way."""

    def __init__(
        self, control: socket.socket, wanted: isolation.Confinement, layers: isolation.Layers
    ):
        self.control, self.wanted, self.layers = control, wanted, layers
        self.mapped = layers.mapped()
        self.running: dict[int, int] = {}  # process id: submission
        self.wakeup, wakes = os.pipe()
        for end in (self.wakeup, wakes):
            os.set_blocking(end, False)
        signal.signal(signal.SIGCHLD, lambda *_: None)
        signal.set_wakeup_fd(wakes, warn_on_full_buffer=False)

    def run(self) -> None:
        while True:
            waiting: list[Any] = [self.control, self.wakeup]
            ready, _, _ = select.select(waiting, [], [])
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
            pid = isolation.fork(self.layers)
            if not pid:
                self.become_worker(attached[0])
            os.close(attached[0])
            self.running[pid] = order["start"]
        for pid, submission in self.running.items():
            if submission == order.get("kill"):
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
            if submission == order.get("time"):
                with contextlib.suppress(OSError):
                    spent = {"spent": submission, "seconds": time.clock_gettime(clock_of(pid))}
                    self.control.send(json.dumps(spent).encode())

    def reap(self) -> None:
        while self.running:
            pid, status, usage = os.wait4(-1, os.WNOHANG)
            if not pid:
                return
            submission = self.running.pop(pid, None)
            if submission is not None:
                ended = {"ended": submission, "status": status, "memory": usage.ru_maxrss * 1024}
                self.control.send(json.dumps(ended).encode())

    def become_worker(self, channel: int) -> None:
        """In the child: never returns."""
        status = 70
        try:
            signal.set_wakeup_fd(-1)
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            os.setsid()
            os.dup2(channel, 3)
            os.closerange(4, 4096)
            if sys.platform == "linux":
                isolation.confine(self.wanted, self.layers, self.mapped)
                with contextlib.suppress(OSError):
                    syscalls.die_with_parent()
            from rlcourse.grading import worker

            worker.serve(socket.socket(fileno=3))
            status = 0
        finally:
            os._exit(status)


if __name__ == "__main__":
    main()
