"""One budget for all that a submission starts, and nothing of it alive when its row is written."""

import os
import socket
import sys
import threading
import time

import classroom as room
import pytest

from rlcourse.checks.asking import wire
from rlcourse.grading.confinement.channel import Channel, Closed
from rlcourse.grading.confinement.disposable import Lost as LostReader
from rlcourse.grading.judging.marking import Readers
from rlcourse.grading.rejected import Rejected
from rlcourse.grading.running.conversation import Dialogue, Stopwatch
from rlcourse.grading.running.limits import Limits
from rlcourse.grading.running.sandbox import Account
from rlcourse.grading.running.steps import DIED, TIMED_OUT, ExamRequest, Lost

LIMITS = Limits(step=1.0, grace=0.3, submission=3.0, patience=20, look=0.3)


@pytest.fixture
def pretended():
    """(a line, what was ordered over it): to a server whose processes take 1.25 seconds each."""
    ours, theirs = socket.socketpair()
    server, orders = Channel(theirs), []

    def serve():
        try:
            while True:
                orders.append(server.hear()[0])
                if "start" in orders[-1]:
                    os.close(server.take()[0])
                elif "kill" in orders[-1]:
                    ended = {"ended": True, "status": 9, "late": False, "full": False}
                    server.tell({**ended, "seconds": 1.25})
                else:
                    server.tell({"spent": 0.5})
        except Closed:
            return

    threading.Thread(target=serve, daemon=True).start()
    with ours, theirs:
        yield ours, orders


def test_each_process_gets_what_the_ones_before_it_have_left(pretended):
    line, orders = pretended
    account = Account(line, LIMITS)
    with pytest.raises(Lost) as over:
        while True:
            account.open().stream.close()
            assert account.processor_seconds() == 0.5
            account.close()
            account.close()  # is charged once
    allowed = [order["start"] for order in orders if "start" in order]
    assert allowed == [3, 2, 1] and over.value.status == TIMED_OUT
    assert account.how_it_ended().detail == "Killed"


def test_a_server_that_is_gone_is_an_incident_and_no_wait(pretended):
    line, _ = pretended
    account = Account(line, LIMITS)
    account.open()
    line.shutdown(socket.SHUT_RDWR)
    assert account.processor_seconds() is None
    lost = account.how_it_ended()
    assert (lost.status, lost.detail) == (DIED, "the server is gone")


def test_what_a_submission_has_the_grader_do_is_on_its_account(pretended):
    """Here a test that a student wrote asks what it tests again and again."""
    call = wire.dumps({"call": 1, "arguments": {}})
    spent = 0.0

    def answer(fields, asked_before):
        nonlocal spent
        before = time.thread_time()
        while time.thread_time() - before < 0.05:
            pass
        spent += time.thread_time() - before
        return {}

    def asks_without_end():
        while True:
            try:
                theirs.receive()
                theirs.send(call)
            except Closed:
                return

    ours, theirs = map(Channel, socket.socketpair())
    threading.Thread(target=asks_without_end, daemon=True).start()
    account, listening = Account(pretended[0], LIMITS), Stopwatch()
    account.open().stream.close()
    request = ExamRequest("test", b"", (), lambda: answer)
    with ours, pytest.raises(Lost) as lost:
        Dialogue(ours, account, request, listening).ask(wire.dumps({}))
    account.close(listening.seconds)
    assert lost.value.status == TIMED_OUT and spent <= LIMITS.step + 1
    assert account.used >= 1.25 + spent


@pytest.mark.skipif(sys.platform != "linux", reason="the sandbox is Linux's")
@pytest.mark.slow
def test_what_a_lost_reader_had_started_is_ended_before_anything_is_said(sandbox, library):
    directory = str(library.parent).encode()
    before = room._processes_with(directory)
    started = []

    class Dies:
        def run(self, data, keys, line):
            started.append(Account(line, LIMITS).open())
            started[0].receive(time.monotonic() + 300)  # it is ready
            assert len(room._processes_with(directory)) > len(before)
            raise LostReader(None)

    readers = Readers.__new__(Readers)
    readers._idle, readers._warm_up_keys = [Dies()], []
    with pytest.raises(Rejected):
        readers.read(b"", sandbox)
    assert room._processes_with(directory) == before and len(readers._idle) == 1
