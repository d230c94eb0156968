"""The process in which a submission runs: its cells, then calls of its functions, in order.

Everything here is within reach of student code, and nothing here is trusted: what it says over the
channel are claims about values, which the judge on the other side compares with right answers that
this process never sees.
"""

import builtins
import contextlib
import importlib
import linecache
import pdb
import random
import signal
import socket
import sys
import types
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import torch

from rlcourse.checks.asking import stand_in, wire
from rlcourse.checks.asking.borrowed import Borrowing, function_at, replaced
from rlcourse.checks.asking.calling import Facts, Failure, Outcome, call, describe, failure_of
from rlcourse.checks.asking.case import Case
from rlcourse.checks.asking.output import FirstWords
from rlcourse.checks.asking.specs import build
from rlcourse.grading.confinement.channel import Channel

# Sends what was found out, and returns the grader's next message.
Exchange = Callable[[dict], dict]


class TookTooLong(BaseException):
    """The soft time limit; no ``except Exception`` swallows it."""


def serve(stream: socket.socket) -> None:
    """Carry out orders until the grader ends this process."""
    sys.stdin = open("/dev/null") if hasattr(sys, "stdin") else None  # noqa: SIM115
    for number in (signal.SIGALRM, signal.SIGPROF):
        signal.signal(number, _alarm)
    sys.path.append("")  # modules that a notebook writes next to itself
    _let_nobody_be_asked()
    session, channel = Session(), Channel(stream)

    def exchange(said: dict) -> dict:
        message = wire.dumps(said)  # ``BrokenMessage`` before anything is sent
        with _undisturbed():
            channel.send(message)
            return wire.loads(channel.receive())

    def ask(number: int, arguments: dict, tracked: tuple, weights: list | None) -> dict:
        """The result of an implementation that only the grader holds."""
        call = {"call": number, "arguments": arguments, "tracked": tracked, "weights": weights}
        reply = exchange(call)
        if _times and _times[-1].over:
            raise TookTooLong
        return reply

    stand_in.ask_through(ask)
    order = exchange({"ready": True})
    while True:
        allowed = Time(order["seconds"], order["wall"])
        if order["do"] == "cell":
            done = session.run_cell(order["name"], order["source"], allowed)
        else:
            done = session.sit_exam(order, allowed, exchange)
        order = exchange(done)


def _let_nobody_be_asked() -> None:
    """Code that waits for input fails at once, and says that it has to be removed."""

    def refusing(what: str) -> Callable:
        def refuse(*_, **__):
            raise RuntimeError(f"remove {what}: there is no input while a notebook is graded")

        return refuse

    sys.breakpointhook = refusing("breakpoint()")
    pdb.set_trace = pdb.post_mortem = refusing("pdb")
    builtins.input = refusing("input()")


@dataclass
class Time:
    """The time that a step may take: processor seconds, and seconds on the clock.

    The clock is for a step that only waits. On a busy machine it runs while nothing is done here,
    which is nobody's fault, and so it leaves many times the processor seconds.
    """

    processor: float
    wall: float
    over: bool = False  # said once; a student's bare ``except`` may have caught it
    speaking: bool = False  # with the grader, which is finished first


_times: list[Time] = []  # of the step that is under way


def _alarm(number, frame):
    if _times:
        _times[-1].over = True
        if not _times[-1].speaking:
            raise TookTooLong


@contextlib.contextmanager
def _undisturbed():
    """No alarm tears a message apart."""
    step = _times[-1] if _times else Time(0.0, 0.0)
    step.speaking = True
    try:
        yield
    finally:
        step.speaking = False


@contextlib.contextmanager
def _at_most(allowed: Time):
    _times.append(allowed)
    signal.setitimer(signal.ITIMER_PROF, allowed.processor)
    signal.setitimer(signal.ITIMER_REAL, allowed.wall)
    try:
        yield
    finally:
        _times.clear()
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.setitimer(signal.ITIMER_REAL, 0)


class Session:
    """The namespace of one notebook."""

    def __init__(self):
        from IPython.core.inputtransformer2 import TransformerManager

        self.module = types.ModuleType("__main__")
        self.names = self.module.__dict__
        self.names.update(display=lambda *things, **_: None, get_ipython=lambda: self)
        sys.modules["__main__"] = self.module
        self.transform = TransformerManager().transform_cell
        torch.manual_seed(0)
        random.seed(0)

    def run_cell(self, name: str, source: str, allowed: Time) -> dict:
        """Run a cell as IPython would; the answer is what it prints and how it fails."""
        said, error, late = FirstWords(), None, False
        with contextlib.redirect_stdout(said), contextlib.redirect_stderr(said):
            try:
                with _at_most(allowed):
                    self.execute(name, self.transform(source))
            except TookTooLong:
                late = True
                error = Failure("TimeoutError", "the cell ran too long")
            except BaseException as raised:
                error = failure_of(raised)
        return {
            "printed": said.getvalue(),
            "error": error,
            "late": late,
            "memory": _is_memory(error),
        }

    def execute(self, name: str, source: str) -> None:
        filename = f"<{name}>"
        linecache.cache[filename] = (len(source), None, source.splitlines(True), filename)
        exec(compile(source, filename, "exec"), self.names)

    def sit_exam(self, order: dict, allowed: Time, exchange: Exchange) -> dict:
        """Call the function on each question as it comes; how it ended is returned.

        What was said counts, whatever the next call does to this process. Functions that the order
        has stand-ins for are replaced by these meanwhile.
        """
        name = order["function"]
        function = self.names.get(name)
        if not callable(function):
            return {"over": True}
        question = exchange({"facts": _facts(function)})
        memory, late = False, True
        library = {n: function_at(*place) for n, place in order.get("library", {}).items()}
        borrowing = Borrowing(name, library, self.names)
        watching: contextlib.AbstractContextManager = borrowing
        in_place = {n: build(spec, {}) for n, spec in order.get("in_place", {}).items()}
        with (
            replaced(self.names, in_place),
            torch.random.fork_rng(devices=[]),
            contextlib.redirect_stdout(FirstWords()),
            contextlib.suppress(TookTooLong),
            _at_most(allowed),
        ):
            while question["do"] == "case" and not allowed.over:
                with watching:
                    outcome = _outcome(function, question["case"])
                watching = contextlib.nullcontext()
                memory = memory or _is_memory(outcome.error)
                try:
                    question = exchange({"outcome": outcome})
                except wire.BrokenMessage as error:  # too large, say: nothing was sent
                    question = exchange({"outcome": Outcome(error=failure_of(error))})
            late = question["do"] == "case"
        return {"over": True, "late": late, "memory": memory, "borrowed": borrowing.found}

    # What IPython's own syntax becomes: %magic, %%magic, !command, name?

    def run_line_magic(self, name: str, line: str, *_, **__):
        if name == "time":
            self.execute("%time", line)

    def run_cell_magic(self, name: str, line: str, body: str, *_, **__):
        if name in ("time", "timeit", "capture", "prun"):
            self.execute(f"%%{name}", self.transform(body))
        elif name in ("writefile", "file"):
            *options, path = line.split()
            with open(path.strip("'\""), "a" if "-a" in options else "w") as file:
                file.write(body)
            importlib.invalidate_caches()

    def getoutput(self, command: str, *_, **__) -> list:
        return []

    def __getattr__(self, name: str):
        return lambda *_, **__: None


def _outcome(function, case: Case) -> Outcome:
    try:
        return call(function, case)
    except TookTooLong:
        raise
    except BaseException as error:
        return Outcome(error=failure_of(error))


def _facts(function) -> Facts:
    try:
        return describe(function)
    except Exception:
        return Facts("")


def _is_memory(error: Failure | None) -> bool:
    if error is None:
        return False
    return error.type == "MemoryError" or "can't allocate memory" in error.message


def rehearse(cells: list[str]) -> None:
    """Run the lesson as it was released, and a call, in the server: what is imported, loaded or
    drawn for the first time there takes long, and is ready in every fork."""
    import matplotlib.pyplot as plt

    main, dtype = sys.modules["__main__"], torch.get_default_dtype()
    session = Session()
    allowed = Time(60, 600)
    for number in (signal.SIGALRM, signal.SIGPROF):
        signal.signal(number, _alarm)
    for cell in ("def double(x):\n    return (2 * x).sum()\n%time 1\n", *cells):
        session.run_cell("rehearsal", cell, allowed)
    case = Case("", {"x": torch.ones(2, dtype=torch.float64)}, ("x",))
    asked: Iterator[dict] = iter([{"do": "case", "case": case}, {"do": "end"}])

    def exchange(said: dict) -> dict:
        wire.loads(wire.dumps(said))
        return next(asked)

    session.sit_exam({"function": "double"}, allowed, exchange)
    plt.close("all")
    torch.set_default_dtype(dtype)  # which a lesson may have changed halfway
    linecache.clearcache()
    for number in (signal.SIGALRM, signal.SIGPROF):
        signal.signal(number, signal.SIG_DFL)
    sys.modules["__main__"] = main


for _name, _function in (("exit", sys.exit), ("quit", sys.exit)):
    if not hasattr(builtins, _name):  # the site module, which defines them, is not loaded
        setattr(builtins, _name, _function)
