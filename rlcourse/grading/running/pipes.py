"""Waiting for the untrusted end of a pipe, and writing to it, without ever being held up."""

import socket
import time
from collections.abc import Callable, Iterable
from contextlib import suppress

from rlcourse.grading.running import protocol
from rlcourse.grading.running.limits import IDLE, Limits

POLL_SECONDS = 2.0  # between two looks at what a slow process is doing


def begins(channel: socket.socket, seconds: float) -> bool:
    """Whether something can be read, or is lost for good, within that many seconds."""
    try:
        channel.settimeout(max(0.001, seconds))
        channel.recv(1, socket.MSG_PEEK)
    except TimeoutError:
        return False
    except OSError:
        pass  # the reader will find out
    return True


def send_all(channel: socket.socket, orders: Iterable[bytes], deadline: float) -> None:
    """Send until the other side is gone, which the code that waits for answers will notice."""
    with channel, suppress(protocol.Closed, TimeoutError):
        for order in orders:
            protocol.send(channel, order, deadline)


class Watch:
    """Waits for the answers to one step, which come in one part or in many.

    The process interrupts itself in time. One that does not, after a time in which an idle machine
    would have been done, is watched: it may go on as long as it works.
    """

    def __init__(self, limits: Limits, end: float, spent: Callable[[], float | None]):
        """`end` is the submission's, `spent` says the processor seconds that its process took."""
        now = time.monotonic()
        self._step, self._spent = limits.step, spent
        self._until = min(now + limits.step * limits.patience, end) + limits.grace
        self._look = now + limits.step + limits.grace
        self._first: float | None = None
        self._last: tuple[float, float] | None = None  # processor seconds, and when they were seen

    def wait(self, channel: socket.socket) -> None:
        """Return when an answer begins; ``TimeoutError`` once the step has used up its time."""
        while not begins(channel, min(self._look, self._until) - time.monotonic()):
            now, spent = time.monotonic(), self._spent()
            if now >= self._until:
                raise TimeoutError
            if spent is not None:
                self._first = spent if self._first is None else self._first
                before = self._last
                idle = before is not None and spent - before[0] < IDLE * (now - before[1])
                if idle or spent - self._first > self._step:
                    raise TimeoutError
                self._last = spent, now
            self._look = time.monotonic() + POLL_SECONDS
