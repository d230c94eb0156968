"""Ctrl-C and SIGTERM end work after the current step, not in the middle of it."""

import signal
import threading

from rlcourse.errors import UserError


class Interrupted(UserError):
    """The work was asked to stop by `received`, and did so cleanly; ``run`` is the run as far as it
    got.

    A scheduler that sends SIGTERM reads 0 as “all is in order”, and it is: the work done so far is
    kept. A person's Ctrl-C should end a chain of commands, so it is 130, as in shells.
    """

    def __init__(self, message: str, run=None, received: str | None = "SIGINT"):
        super().__init__(message)
        self.run = run
        self.exit_code = 0 if received == "SIGTERM" else 130


class StopRequest:
    """``with StopRequest() as stop:`` the first signal makes `stop` true, the second acts at once.

    If two are nested, both become true: the inner work may just have finished and need not stop,
    but the outer work has to.

    Outside the main thread, where Python delivers no signals, it never becomes true.
    """

    def __init__(self):
        self.received: str | None = None
        self._previous: dict = {}

    def __bool__(self) -> bool:
        return self.received is not None

    def __enter__(self) -> "StopRequest":
        if threading.current_thread() is threading.main_thread():
            for number in (signal.SIGINT, signal.SIGTERM):
                self._previous[number] = signal.signal(number, self._remember)
        return self

    def __exit__(self, *exception) -> None:
        self._restore()

    def _remember(self, number, frame) -> None:
        self.received = signal.Signals(number).name
        outer = getattr(self._previous[number], "__self__", None)
        if isinstance(outer, StopRequest):
            outer.received = self.received
        self._restore()

    def _restore(self) -> None:
        for number, handler in self._previous.items():
            signal.signal(number, handler)
        self._previous.clear()
