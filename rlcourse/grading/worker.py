"""The process in which a submission runs: its cells, then calls of its functions, in order.

Everything here is within reach of student code, and nothing here is trusted: what it says over the
channel are claims about values, which the judge on the other side compares with right answers that
this process never sees.
"""

import builtins
import contextlib
import linecache
import random
import signal
import socket
import sys
import threading
import time
import types

import torch

from rlcourse.checks.calling import (
    Case,
    Facts,
    Failure,
    FirstWords,
    Outcome,
    _failure,
    call,
    describe,
)
from rlcourse.grading import protocol

FOREVER = 10**9  # the grader keeps the time
MOST_THREADS = 16  # alive after a cell, before a person should look


class TookTooLong(BaseException):
    """The soft time limit; no ``except Exception`` swallows it."""


def serve(channel: socket.socket) -> None:
    """Obey until the grader ends this process."""
    sys.stdin = open("/dev/null") if hasattr(sys, "stdin") else None  # noqa: SIM115
    signal.signal(signal.SIGALRM, _alarm)
    _say(channel, {"ready": True})
    session = Session()
    while True:
        order = protocol.receive(channel, time.monotonic() + FOREVER)
        if order["do"] == "cell":
            _say(channel, session.run_cell(order["name"], order["source"], order["seconds"]))
        else:
            _say(channel, session.sit_exam(order["function"], order["cases"], order["seconds"]))


def _say(channel: socket.socket, answer: dict) -> None:
    protocol.send(channel, protocol.dumps(answer), time.monotonic() + FOREVER)


def _alarm(number, frame):
    raise TookTooLong


@contextlib.contextmanager
def _at_most(seconds: float):
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
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

    def run_cell(self, name: str, source: str, seconds: float) -> dict:
        """Run a cell as IPython would; what it prints and how it fails is the answer."""
        said, error, late = FirstWords(), None, False
        with contextlib.redirect_stdout(said), contextlib.redirect_stderr(said):
            try:
                with _at_most(seconds):
                    self.execute(name, self.transform(source))
            except TookTooLong:
                late = True
                error = Failure("TimeoutError", f"the cell ran longer than {seconds:g} seconds")
            except BaseException as raised:
                error = _failure(raised)
        return {
            "printed": said.getvalue(),
            "error": error,
            "late": late,
            "memory": _is_memory(error),
            "threads": threading.active_count() > MOST_THREADS,
        }

    def execute(self, name: str, source: str) -> None:
        filename = f"<{name}>"
        linecache.cache[filename] = (len(source), None, source.splitlines(True), filename)
        exec(compile(source, filename, "exec"), self.names)

    def sit_exam(self, name: str, cases: list[Case], seconds: float) -> dict:
        """Call the function on every case; after the time limit, the remaining ones are errors."""
        function = self.names.get(name)
        if not callable(function):
            return {"missing": True}
        outcomes: list[Outcome] = []
        with torch.random.fork_rng(devices=[]), contextlib.redirect_stdout(FirstWords()):
            late = self._call_all(function, cases, outcomes, seconds)
        unanswered = Outcome(error=Failure("TimeoutError", "the function ran too long"))
        outcomes += [unanswered] * (len(cases) - len(outcomes))
        memory = any(_is_memory(outcome.error) for outcome in outcomes)
        return {"facts": _facts(function), "outcomes": outcomes, "late": late, "memory": memory}

    def _call_all(self, function, cases, outcomes, seconds) -> bool:
        try:
            with _at_most(seconds):
                for case in cases:
                    outcomes.append(_outcome(function, case))
        except TookTooLong:
            return True
        return False

    # What IPython's own syntax becomes: %magic, %%magic, !command, name?

    def run_line_magic(self, name: str, line: str, *_, **__):
        if name == "time":
            exec(compile(line, "<%time>", "exec"), self.names)

    def run_cell_magic(self, name: str, line: str, body: str, *_, **__):
        if name in ("time", "timeit", "capture", "prun"):
            self.execute(f"%%{name}", body)

    def getoutput(self, command: str, *_, **__) -> list:
        return []

    def __getattr__(self, name: str):
        return lambda *_, **__: None


def _outcome(function, case: Case) -> Outcome:
    try:
        return call(function, case, repeat=True)
    except TookTooLong:
        raise
    except BaseException as error:
        return Outcome(error=_failure(error))


def _facts(function) -> Facts:
    try:
        return describe(function)
    except Exception:
        return Facts("")


def _is_memory(error: Failure | None) -> bool:
    if error is None:
        return False
    return error.type == "MemoryError" or "can't allocate memory" in error.message


def rehearse() -> None:
    """Run a cell and a call once, in the server, so that no fork has to import what they need."""
    main = sys.modules["__main__"]
    session = Session()
    session.run_cell("rehearsal", "def double(x):\n    return (2 * x).sum()\n%time 1\n", 60)
    case = Case("", {"x": torch.ones(2, dtype=torch.float64)}, ("x",))
    signal.signal(signal.SIGALRM, _alarm)
    answer = session.sit_exam("double", [case], 60)
    protocol.loads(protocol.dumps(answer))
    linecache.clearcache()
    signal.signal(signal.SIGALRM, signal.SIG_DFL)
    sys.modules["__main__"] = main


for _name, _function in (("exit", sys.exit), ("quit", sys.exit)):
    if not hasattr(builtins, _name):  # the site module, which defines them, is not loaded
        setattr(builtins, _name, _function)
