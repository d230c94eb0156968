"""One submission's steps, carried out in a confined process and in its successors.

When the process is lost, to a loop that no alarm ends, to a signal, to a reply that is none,
another one takes its place, skips the step that was fatal, and continues with the rest, as long
as the submission's account has time left.
"""

import itertools
import socket
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from queue import SimpleQueue
from typing import Protocol

from rlcourse.grading.running import protocol
from rlcourse.grading.running.answers import (
    LATE,
    LOST,
    CellAnswer,
    ExamInParts,
    failure_of,
    fields_of,
    text_of,
)
from rlcourse.grading.running.limits import Limits
from rlcourse.grading.running.pipes import Watch, send_all
from rlcourse.grading.running.steps import (
    DIED,
    FLAGS,
    TIMED_OUT,
    Cell,
    ExamRequest,
    Incident,
    Lost,
    Transcript,
)

FORK_SECONDS = 600.0  # before any student code runs
REPLY_SECONDS = 30.0  # from the first byte of an answer to its last
MOST_LOSSES = 6  # processes that one submission may lose
THE_REST = "the rest"  # the place of an incident that belongs to no single step


class Processes(Protocol):
    """A submission's ``Account``, or its stand-in in another process."""

    limits: Limits
    end: float  # on the clock of ``time.monotonic``

    def open(self) -> tuple[int, socket.socket]: ...

    def close(self, number: int, more: float = 0.0) -> None: ...

    def is_over(self) -> bool: ...

    def processor_seconds(self, number: int) -> float | None: ...

    def how_it_ended(self, number: int) -> Lost: ...


class Conversation:
    """The questions to a submission, and its answers."""

    def __init__(self, processes: Processes):
        self.processes, self.limits = processes, processes.limits
        self._listening = 0.0  # our own processor seconds, to understand one process and answer it

    def run(self, steps: Sequence[Cell | ExamRequest]) -> Transcript:
        """Carry out the steps in order; whatever happens ends in the transcript."""
        transcript, left_out = Transcript(), set()
        for _ in range(MOST_LOSSES):
            left = [s for s in steps if s.name not in left_out and s.name not in transcript.exams]
            fatal = self._attempt(left, transcript)
            if fatal is None:
                return transcript
            left_out.add(fatal)
        incident = Incident(DIED, THE_REST, "too many of its processes died")
        transcript.incidents.append(incident)
        return transcript

    def _all_of_it(self) -> str:
        seconds, clock = self.limits.submission, self.limits.clock
        return f"more than {seconds:g} s of processor time, or {clock:g} s on the clock, in all"

    def _attempt(self, steps, transcript: Transcript) -> str | None:
        """Run the steps in one process; the name of the step that it was lost in, or None."""
        try:
            number, ours = self.processes.open()
        except Lost as over:
            transcript.incidents.append(Incident(over.status, THE_REST, self._all_of_it()))
            return None
        where, self._listening = "start", 0.0
        try:
            with ours:
                protocol.receive(ours, time.monotonic() + FORK_SECONDS)
                try:
                    for where in self._converse(number, ours, steps, transcript):  # noqa: B007
                        pass  # the name of the last step is read below
                finally:
                    with suppress(OSError):
                        ours.shutdown(socket.SHUT_RDWR)  # ends the thread that sends
        except TimeoutError:
            lost = Lost(TIMED_OUT, "killed")
        except protocol.Closed:
            lost = self.processes.how_it_ended(number)
        except protocol.BrokenMessage as error:
            lost = Lost(DIED, f"answered with something else: {error}")
        except Lost as error:
            lost = error
        else:
            return None
        finally:
            self.processes.close(number, self._listening)
        if not any(i.where == where and i.status == lost.status for i in transcript.incidents):
            transcript.incidents.append(Incident(lost.status, where, lost.detail))
        return where

    def _converse(self, number, channel, steps, transcript) -> Iterator[str]:
        """Send the steps and take the answers; yields each step's name before its answer is due.

        A thread sends ahead, so that the process need not wait for us between two steps; and we
        only ever wait for an answer, so that a fatal step is always blamed for itself.
        """
        orders: SimpleQueue[bytes | None] = SimpleQueue()
        for step in steps:
            orders.put(self._order_of(step))
        end = self.processes.end
        deadline = end + self.limits.grace
        sender = (channel.dup(), iter(orders.get, None), deadline)
        threading.Thread(target=send_all, args=sender).start()
        try:
            for step in steps:
                yield step.name
                if time.monotonic() > end:
                    raise Lost(TIMED_OUT, self._all_of_it())
                spent = partial(self.processes.processor_seconds, number)
                watch = Watch(self._limits_of(step), end, spent)

                def receive(watch=watch) -> dict:
                    watch.wait(channel)
                    until = min(time.monotonic() + REPLY_SECONDS, deadline + REPLY_SECONDS / 2)
                    return fields_of(protocol.receive(channel, until))

                if isinstance(step, ExamRequest):
                    answer = step.answer() if step.answer else None
                    hear = self._counted(self._answering(answer, receive, orders))
                    self._note(step, self._sit(step, hear, transcript, answer), transcript)
                else:
                    self._note(step, self._counted(receive)(), transcript)
        finally:
            orders.put(None)

    def _limits_of(self, step: Cell | ExamRequest) -> Limits:
        own = step.seconds if isinstance(step, ExamRequest) else None
        return self.limits if own is None else replace(self.limits, step=own)

    def _counted(self, hear: Callable[[], dict]) -> Callable[[], dict]:
        """The same, charging the submission for the grader's time that it costs."""

        def counted() -> dict:
            before = time.thread_time()
            try:
                return hear()
            finally:
                self._listening += time.thread_time() - before

        return counted

    def _answering(self, answer, receive, orders: SimpleQueue) -> Callable[[], dict]:
        """The next message, after answering the calls of stand-ins that come before it."""
        calls, begun = itertools.count(), time.thread_time()

        def hear() -> dict:
            while "call" in (fields := receive()) and answer:
                orders.put(protocol.dumps(answer(fields, next(calls))))
                if time.thread_time() - begun > self.limits.step:
                    raise Lost(TIMED_OUT, "calls that take too long to answer")
            return fields

        return hear

    @staticmethod
    def _sit(step: ExamRequest, hear, transcript: Transcript, asked=None) -> dict:
        """Take an exam's answers as they arrive, and say how it ended; none of them is lost."""
        exam, otherwise = ExamInParts(step.cases), LOST
        try:
            while not exam.add(part := hear()):
                pass
            otherwise = LATE
            return part
        finally:
            if exam.begun or otherwise is LATE:
                transcript.exams[step.name] = exam.answer(otherwise, asked)

    def _order_of(self, step: Cell | ExamRequest) -> bytes:
        if isinstance(step, ExamRequest):
            return step.message
        order = {"do": "cell", "name": step.name, "source": step.source}
        return protocol.dumps({**order, **self.limits.seconds})

    @staticmethod
    def _note(step: Cell | ExamRequest, answer: dict, transcript: Transcript) -> None:
        if isinstance(step, Cell):
            cell = CellAnswer(text_of(answer, "printed"), failure_of(answer.get("error")))
            transcript.cells[step.name] = cell
        for flag, status in FLAGS.items():
            incident = Incident(status, step.name)
            if answer.get(flag) is True and incident not in transcript.incidents:
                transcript.incidents.append(incident)
