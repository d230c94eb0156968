"""A submission's account, kept by the process that starts and ends processes, used by another one.

The reader of a submission has the ``RemoteAccount``; its starter answers for the real one. Nothing
here imports torch.
"""

import math
import os
import socket
import time
from collections.abc import Callable
from typing import Any

from rlcourse.grading.confinement.disposable import Bounds, Channel
from rlcourse.grading.confinement.disposable import Lost as LostReader
from rlcourse.grading.rejected import Rejected
from rlcourse.grading.running.limits import Limits
from rlcourse.grading.running.sandbox import Account
from rlcourse.grading.running.steps import DIED, TIMED_OUT, Lost

READING, SLOWLY = 60.0, 10  # processor seconds to take apart and judge; on the clock, times that


def reading_bounds(limits: Limits) -> Bounds:
    """What it may take to read a submission: more, by far, than the submission itself may, so that
    a submission that exceeds it is reported and keeps what it earned."""
    return Bounds(
        cpu_seconds=math.ceil(READING + limits.submission),
        seconds=SLOWLY * READING + limits.clock,
    )


class RemoteAccount:
    """A submission's account kept by another process, which starts and ends processes for us."""

    def __init__(self, ask: Channel, limits: Limits):
        self._ask, self.limits = ask, limits
        self.end = time.monotonic() + self._say({"clock": True})

    def _say(self, question: dict) -> Any:
        self._ask.tell(question)
        return self._ask.hear()

    def open(self) -> tuple[int, socket.socket]:
        number = self._say({"open": True})
        if number is None:
            raise Lost(TIMED_OUT, "all of its time is used up")
        return number, socket.socket(fileno=self._ask.take())

    def close(self, number: int, more: float = 0.0) -> None:
        self._say({"close": number, "more": more})

    def is_over(self) -> bool:
        return self._say({"over": True})

    def processor_seconds(self, number: int) -> float | None:
        return self._say({"spent": number})

    def how_it_ended(self, number: int) -> Lost:
        return Lost(*self._say({"ended": number}))


def answer_for(account: Account) -> Callable[[dict, Channel], None]:
    """Carries out a ``RemoteAccount``'s requests on the real account."""

    def answer(question: dict, channel: Channel) -> None:
        if "open" in question:
            try:
                number, process = account.open()
            except Lost:
                channel.tell(None)
                return
            with process:
                channel.tell(number)
                channel.pass_on(process.fileno())
        elif "close" in question:
            account.close(question["close"], question["more"])
            channel.tell(True)
        elif "clock" in question:
            channel.tell(account.end - time.monotonic())
        elif "over" in question:
            channel.tell(account.is_over())
        elif "spent" in question:
            channel.tell(account.processor_seconds(question["spent"]))
        elif "ended" in question:
            lost = account.how_it_ended(question["ended"])
            channel.tell([lost.status, lost.detail])

    return answer


def in_words(lost: LostReader) -> Rejected:
    """Why a submission is not graded whose reader was lost."""
    if lost.by_time:
        return Rejected(TIMED_OUT, "it takes too long to read")
    how = f"signal {lost.signal}" if lost.signal else "an exit"
    if lost.status is not None and os.WIFEXITED(lost.status):
        how = f"exit {os.WEXITSTATUS(lost.status)}"
    return Rejected(DIED, f"the process that was reading it ended with {how}")
