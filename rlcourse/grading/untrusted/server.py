"""The warm server on the untrusted side: it forks a confined process for every submission.

It is a separate program, started with an empty environment, and holds nothing secret: torch, the
students' copy of the library, and the means to fork. The grader talks to it by a ``Channel`` over
the socket that is its standard input: first what confines it, then "line" for each submission, with
a socket attached. Over that, the submission's reader says

    {"start": 180}, with a socket attached
                    fork, confine, run code for so many processor seconds, talk over that socket
    {"kill": true}  end it now
    {"time": true}  → {"spent": …}  its processor seconds so far, of all its threads
    → {"ended": true, "status": …, "seconds": …, "late": …, "full": …}
                    it has ended, how (as ``waitpid`` says it), whether its processor time was over,
                    and whether it wrote too much

A line has one process at a time. When it is hung up, that is killed; once it is gone, the server
hangs up, too. When the grader is gone, the server ends, and so does all that it started.
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
from rlcourse.grading.confinement.channel import Channel, Closed

# Used if no file system of its own bounds what a submission writes
MOST_FILES = 1000
LOOK_SECONDS = 0.1  # between two looks at them


def main() -> None:
    """Configure by the first message, confine, warm up, and serve until the grader is gone."""
    control = Channel(socket.socket(fileno=os.dup(0)))
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    settings: Any = control.hear()[0].items()
    given: Any = {k: tuple(v) if type(v) is list else v for k, v in settings}
    wanted = isolation.Confinement(**given)
    layers = isolation.Layers()
    _be_first_to_go()
    if sys.platform == "linux":
        isolation.enter(wanted, layers)
        with contextlib.suppress(OSError):
            syscalls.set_dumpable(False)
        isolation.without(wanted.readable, wanted.hidden)  # once, before the forks
    warm_up(Path(sys.path[0]))
    found = _layers_of_a_fork(wanted, layers)
    os.dup2(os.open(os.devnull, os.O_WRONLY), 2)  # until here it told the grader what went wrong
    control.tell(found)
    with contextlib.suppress(Closed):
        Server(control, wanted, layers).run()
    os._exit(0)


def _be_first_to_go() -> None:
    """Where memory ends, as in a small container, the system ends student code and not the judge,
    which then says so."""
    with contextlib.suppress(OSError):
        Path("/proc/self/oom_score_adj").write_text("1000")


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
    if not (child := os.fork()):  # what the search for fonts takes, a submission would have
        import matplotlib.font_manager

        os._exit(0)
    os.waitpid(child, 0)
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
class Line:
    """A submission's line, and the process that runs for it."""

    channel: Channel
    scratch: str
    pid: int = 0  # 0: there is none
    cpu: int = 0
    full: bool = False
    hung_up: bool = False

    def say(self, answer: dict) -> None:
        with contextlib.suppress(Closed):  # it hangs up, which is noticed next
            self.channel.tell(answer)

    def kill(self) -> None:
        if self.pid:
            with contextlib.suppress(ProcessLookupError):
                os.kill(self.pid, signal.SIGKILL)


class Server:
    """Forks, kills and reaps; one process for each submission that is under way."""

    def __init__(self, control: Channel, wanted: isolation.Confinement, layers: isolation.Layers):
        self.control, self.wanted, self.layers = control, wanted, layers
        self.mapped = layers.mapped()
        self.lines: list[Line] = []
        self.count = 0
        self.wakeup, wakes = os.pipe()
        for end in (self.wakeup, wakes):
            os.set_blocking(end, False)
        signal.signal(signal.SIGCHLD, lambda *_: None)
        signal.set_wakeup_fd(wakes, warn_on_full_buffer=False)

    def run(self) -> None:
        """Until the grader is gone, which raises ``Closed``."""
        unbounded = "mount" not in self.layers.standing
        while True:
            open_lines = {line.channel.stream: line for line in self.lines if not line.hung_up}
            look = LOOK_SECONDS if unbounded and self.lines else None
            waiting: list[Any] = [self.control.stream, self.wakeup, *open_lines]
            ready, _, _ = select.select(waiting, [], [], look)
            if unbounded:
                self.look_after_files()
            if self.wakeup in ready:
                os.read(self.wakeup, 4096)
                self.reap()
            for stream in ready:
                if stream in open_lines:
                    self.attend(open_lines[stream])
            for line in [line for line in self.lines if line.hung_up and not line.pid]:
                line.channel.stream.close()
                self.lines.remove(line)
            if self.control.stream in ready:
                self.control.hear()
                self.count += 1
                line = Channel(socket.socket(fileno=self.control.take()[0]))
                scratch = f"{self.wanted.scratch}/submission-{self.count}"
                self.lines.append(Line(line, scratch))

    def attend(self, line: Line) -> None:
        """Do what a submission's reader says next."""
        try:
            order, _ = line.channel.hear()
            if "start" in order:
                self.start(line, order["start"], line.channel.take()[0])
            elif "time" in order:
                spent = None
                with contextlib.suppress(OSError):
                    spent = time.clock_gettime(clock_of(line.pid)) if line.pid else None
                line.say({"spent": spent})
            else:
                line.kill()
        except Closed:
            line.hung_up = True
            line.kill()

    def start(self, line: Line, cpu: int, channel: int) -> None:
        line.cpu, line.full = cpu, False
        line.pid = isolation.fork(self.layers)
        if not line.pid:
            self.become_worker(channel, line)
        os.close(channel)

    def look_after_files(self) -> None:
        """Bound what a process writes, if no file system of its own does."""
        for line in self.lines:
            if line.pid and not line.full and is_full(line.scratch, self.wanted):
                line.full = True
                line.kill()

    def reap(self) -> None:
        while any(line.pid for line in self.lines):
            pid, status, usage = os.wait4(-1, os.WNOHANG)
            if not pid:
                return
            for line in self.lines:
                if line.pid == pid:
                    line.pid = 0
                    shutil.rmtree(line.scratch, ignore_errors=True)
                    line.say(how_it_ended(line, status, usage))  # last: nothing of it is left

    def become_worker(self, channel: int, line: Line) -> None:
        """In the child: never returns."""
        status = 70
        try:
            signal.set_wakeup_fd(-1)
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            os.setsid()
            os.dup2(channel, 3)
            os.closerange(4, 4096)
            if sys.platform == "linux":
                wanted = replace(self.wanted, cpu_seconds=line.cpu)
                isolation.confine(wanted, self.layers, self.mapped, line.scratch)
            from rlcourse.grading.untrusted import worker

            worker.serve(socket.socket(fileno=3))
            status = 0
        finally:
            os._exit(status)


def how_it_ended(line: Line, status: int, usage) -> dict:
    """What is said of a process that has ended."""
    seconds = usage.ru_utime + usage.ru_stime
    # process 1 of a namespace is deaf to SIGXCPU, and is killed
    by_the_limit = os.WIFSIGNALED(status) and os.WTERMSIG(status) in (
        signal.SIGXCPU,
        signal.SIGKILL,
    )
    return {
        "ended": True,
        "status": status,
        "seconds": round(seconds, 3),
        "late": by_the_limit and seconds >= line.cpu - 0.5,
        "full": line.full,
    }
