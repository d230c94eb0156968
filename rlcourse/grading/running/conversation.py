"""One submission's steps, carried out in a confined process and in its successors.

Everything goes in lock step: a question is sent once the answer to the one before has come, so that
student code never holds a question that it is not being asked. When the process is lost, to a loop
that no alarm ends, to a signal, to a reply that is none, another one takes its place, skips the
step that was fatal, and continues with the rest, as long as the account has time left.
"""

import itertools
import time
from collections.abc import Sequence
from dataclasses import replace

from rlcourse.checks.asking import wire
from rlcourse.grading.confinement.channel import Channel, Closed, TooLarge
from rlcourse.grading.running.answers import (
    LATE,
    LOST,
    AnswersSoFar,
    CellAnswer,
    failure_of,
    fields_of,
    text_of,
)
from rlcourse.grading.running.sandbox import Account
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
REPLY_SECONDS = 30.0  # from the first byte of a message to its last
MOST_LOSSES = 6  # processes that one submission may lose
THE_REST = "the rest"  # the place of an incident that belongs to no single step
NO_MORE = wire.dumps({"do": "end"})


class Conversation:
    """The questions to a submission, and its answers."""

    def __init__(self, account: Account):
        self.account, self.limits = account, account.limits

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
            channel = self.account.open()
        except Lost as over:
            transcript.incidents.append(Incident(over.status, THE_REST, self._all_of_it()))
            return None
        where, listening = "start", Stopwatch()
        try:
            with channel:
                channel.receive(time.monotonic() + FORK_SECONDS, wire.LARGEST_MESSAGE)
                for step in steps:
                    where = step.name
                    if time.monotonic() > self.account.end:
                        raise Lost(TIMED_OUT, self._all_of_it())
                    self._take(step, Dialogue(channel, self.account, step, listening), transcript)
        except TimeoutError:
            lost = Lost(TIMED_OUT, "killed")
        except Closed:
            lost = self.account.how_it_ended()
        except (wire.BrokenMessage, TooLarge) as error:
            lost = Lost(DIED, f"answered with something else: {error}")
        except Lost as error:
            lost = error
        else:
            return None
        finally:
            self.account.close(listening.seconds)
        if not any(i.where == where and i.status == lost.status for i in transcript.incidents):
            transcript.incidents.append(Incident(lost.status, where, lost.detail))
        return where

    def _take(self, step: Cell | ExamRequest, dialogue: "Dialogue", transcript: Transcript) -> None:
        if isinstance(step, ExamRequest):
            answer = self._sit(step, dialogue, transcript)
        else:
            order = {"do": "cell", "name": step.name, "source": step.source}
            answer = dialogue.ask(wire.dumps({**order, **self.limits.seconds}))
            cell = CellAnswer(text_of(answer, "printed"), failure_of(answer.get("error")))
            transcript.cells[step.name] = cell
        for flag, status in FLAGS.items():
            incident = Incident(status, step.name)
            if answer.get(flag) is True and incident not in transcript.incidents:
                transcript.incidents.append(incident)

    @staticmethod
    def _sit(step: ExamRequest, dialogue: "Dialogue", transcript: Transcript) -> dict:
        """Ask an exam's questions one by one, and say how it ended; no answer is lost."""
        so_far, otherwise = AnswersSoFar(len(step.questions)), LOST
        try:
            for message in (step.order, *step.questions, NO_MORE):
                if so_far.add(part := dialogue.ask(message)):
                    otherwise = LATE
                    return part
            raise wire.BrokenMessage("an answer to nothing")
        finally:
            if so_far.begun or otherwise is LATE:
                transcript.exams[step.name] = so_far.answer(otherwise, dialogue.answer)


class Stopwatch:
    """Our own processor seconds, to understand one process and to answer it."""

    def __init__(self) -> None:
        self.seconds = 0.0

    def __enter__(self) -> "Stopwatch":
        self._before = time.thread_time()
        return self

    def __exit__(self, *_) -> None:
        self.seconds += time.thread_time() - self._before


class Dialogue:
    """One step: a message, its answer, the next message. The submission pays for our listening.

    The process interrupts itself in time. One that does not, after a time in which an idle machine
    would have been done, is watched: it may use as much of a processor as the step allows.
    """

    def __init__(self, channel: Channel, account: Account, step, listening: Stopwatch):
        own = step.seconds if isinstance(step, ExamRequest) else None
        limits = account.limits if own is None else replace(account.limits, step=own)
        now = time.monotonic()
        self._channel, self._account, self._limits = channel, account, limits
        self._until = min(now + limits.step * limits.patience, account.end) + limits.grace
        self._look = now + limits.step + limits.grace
        self._first: float | None = None  # processor seconds at the first look
        self._listening = listening
        self.answer = step.answer() if isinstance(step, ExamRequest) and step.answer else None
        self._calls, self._answering = itertools.count(), Stopwatch()

    def ask(self, message: bytes) -> dict:
        """What is answered to the message. Calls of stand-ins that come before it are answered."""
        self._send(message)
        while "call" in (fields := self._receive()):
            if self.answer is None:
                raise wire.BrokenMessage("a call that nobody answers")
            with self._listening, self._answering:
                reply = wire.dumps(self.answer(fields, next(self._calls)))
            self._send(reply)
            if self._answering.seconds > self._limits.step:
                raise Lost(TIMED_OUT, "calls that take too long to answer")
        return fields

    def _send(self, message: bytes) -> None:
        if self._channel.has_more():
            raise wire.BrokenMessage("an answer before its question")
        self._channel.send(message, time.monotonic() + REPLY_SECONDS)

    def _receive(self) -> dict:
        self._wait()
        with self._listening:
            until = min(time.monotonic(), self._account.end + self._limits.grace) + REPLY_SECONDS
            return fields_of(wire.loads(self._channel.receive(until, wire.LARGEST_MESSAGE)))

    def _wait(self) -> None:
        """Return when an answer begins; ``TimeoutError`` once the step has used up its time."""
        look = max(self._look, time.monotonic() + self._limits.look)
        while not self._channel.has_more(min(look, self._until) - time.monotonic()):
            spent, now = self._account.processor_seconds(), time.monotonic()
            self._first = spent if self._first is None else self._first
            if now >= self._until or (spent or 0.0) - (self._first or 0.0) > self._limits.step:
                raise TimeoutError
            look = now + self._limits.look
