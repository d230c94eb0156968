"""One budget for all that a submission starts, and nothing of it alive when its row is written."""

import contextlib
import socket
import tempfile
import time
from pathlib import Path
from queue import SimpleQueue

import classroom as room
import pytest

from rlcourse.exercises import all as all_exercises
from rlcourse.grading.confinement.disposable import Lost as LostReader
from rlcourse.grading.judging import reading
from rlcourse.grading.judging.reading import Readers
from rlcourse.grading.rejected import Rejected
from rlcourse.grading.running import remote
from rlcourse.grading.running.conversation import THE_REST, Conversation
from rlcourse.grading.running.library import write_library
from rlcourse.grading.running.limits import Limits
from rlcourse.grading.running.sandbox import Account, Sandbox
from rlcourse.grading.running.steps import TIMED_OUT, Cell, Lost

LIMITS = Limits(step=1.0, grace=0.3, submission=3.0)
DEAF = """
import signal
signal.setitimer(signal.ITIMER_PROF, 0); signal.setitimer(signal.ITIMER_REAL, 0)
signal.signal(signal.SIGXCPU, lambda *_: None)
while True: pass
"""


class Pretended:
    """A sandbox whose processes take so many seconds each, and which remembers who is alive."""

    def __init__(self, seconds: float, limits: Limits = LIMITS):
        self.seconds, self.limits = seconds, limits
        self.alive: set[int] = set()
        self.allowed: list[float] = []

    def open_process(self, seconds: float) -> tuple[int, socket.socket]:
        self.allowed.append(seconds)
        self.alive.add(len(self.allowed))
        return len(self.allowed), socket.socketpair()[0]

    def end(self, number: int) -> float:
        self.alive.discard(number)
        return self.seconds

    def processor_seconds(self, number: int) -> float:
        return 0.5

    def how_it_ended(self, number: int) -> Lost:
        return Lost("died")


def test_each_process_gets_what_the_ones_before_it_have_left():
    sandbox = Pretended(1.25)
    with Account(sandbox) as account, pytest.raises(Lost) as over:
        while True:
            number, channel = account.open()
            channel.close()
            account.close(number)
            account.close(number)  # is charged once
    assert sandbox.allowed == [3.0, 1.75, 0.5] and over.value.status == TIMED_OUT


def test_what_a_submission_has_the_grader_do_is_on_its_account():
    """Here a test that a student wrote asks what it tests again and again."""
    call = {"call": 1, "arguments": {}}
    spent = 0.0

    def answer(fields, asked_before):
        nonlocal spent
        before = time.thread_time()
        while time.thread_time() - before < 0.05:
            pass
        spent += time.thread_time() - before
        return {}

    sandbox = Pretended(1.0)
    with Account(sandbox) as account:
        conversation = Conversation(account)
        hear = conversation._counted(conversation._answering(answer, lambda: call, SimpleQueue()))
        with pytest.raises(Lost) as lost:
            hear()
        number, channel = account.open()
        channel.close()
        account.close(number, conversation._listening)
        assert lost.value.status == TIMED_OUT and spent <= LIMITS.step + 1
        assert account._used >= 1.0 + spent


def test_the_clock_of_a_submission_is_one_too(monkeypatch):
    with Account(Pretended(0.0, Limits(submission=0.0))) as account:
        assert account.is_over()
        with pytest.raises(Lost):
            account.open()


def test_what_a_lost_reader_had_started_is_ended_before_anything_is_said(monkeypatch):
    sandbox = Pretended(1.0)

    class Dies:
        def run(self, data, answer, hints):
            class Channel:
                def __getattr__(self, name):
                    return lambda *_: None

            answer({"open": True}, Channel())
            answer({"open": True}, Channel())
            assert sandbox.alive == {1, 2}
            raise LostReader(None)

    readers = Readers.__new__(Readers)
    readers._idle, readers._warm_up_keys = [Dies()], []
    with pytest.raises(Rejected):
        readers.read(b"", sandbox)
    assert sandbox.alive == set() and len(readers._idle) == 1


def test_a_reader_is_given_more_time_than_any_submission():
    for limits in (Limits(), LIMITS, Limits(submission=1e4)):
        bounds = remote.reading_bounds(limits)
        assert bounds.seconds >= limits.clock + remote.READING
        assert bounds.cpu_seconds >= limits.submission + remote.READING


def test_whoever_asks_for_another_account_s_process_is_not_answered():
    sandbox = Pretended(1.0)
    with Account(sandbox) as one, Account(sandbox) as other:
        number, channel = one.open()
        channel.close()
        other.close(number)
        assert sandbox.alive == {number} and other.processor_seconds(number) is None
        told = []
        channel = type("C", (), {"tell": lambda self, said: told.append(said)})()
        remote.answer_for(other)({"spent": number}, channel)
        assert told == [None]


@pytest.mark.slow
def test_many_hogs_take_together_what_one_may(template):
    cells = [Cell(f"hog {number}", DEAF) for number in range(6)]
    with tempfile.TemporaryDirectory(prefix="rlcourse-test-") as directory:
        root = Path(directory)
        root.chmod(0o755)
        write_library(root / "library", list(all_exercises())[:1])
        with Sandbox(root / "library", root / "server", limits=LIMITS) as sandbox:
            before = room._processes_with(directory.encode())
            with contextlib.closing(sandbox), Account(sandbox) as account:
                transcript = reading.Conversation(account).run([Cell("x", "print(1)"), *cells])
                used = account._used
                assert room._processes_with(directory.encode()) == before
    assert transcript.cells["x"].printed == "1\n"
    assert transcript.incidents[-1].where == THE_REST
    assert {incident.status for incident in transcript.incidents} == {TIMED_OUT}
    # The last process may go on for the five seconds between the two limits of its time.
    assert LIMITS.submission <= used <= LIMITS.submission + 6
