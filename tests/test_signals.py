"""Who is told about a signal, and that the old handlers are restored."""

import os
import signal

import pytest

from rlcourse.signals import StopRequest


def test_the_first_signal_is_remembered_and_the_second_acts():
    with StopRequest() as stop:
        assert not stop
        os.kill(os.getpid(), signal.SIGINT)
        assert stop and stop.received == "SIGINT"
        with pytest.raises(KeyboardInterrupt):
            os.kill(os.getpid(), signal.SIGINT)


def test_what_the_inner_work_hears_the_outer_work_hears_too():
    """An evaluation in its last batch need not stop, but the training that it is a part of must."""
    before = signal.getsignal(signal.SIGTERM)
    with StopRequest() as outer:
        with StopRequest() as inner:
            os.kill(os.getpid(), signal.SIGTERM)
        assert inner.received == outer.received == "SIGTERM"
    assert signal.getsignal(signal.SIGTERM) == before
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_what_came_before_the_inner_work_is_not_its_business():
    with StopRequest() as outer:
        os.kill(os.getpid(), signal.SIGINT)
        with StopRequest() as inner:
            pass
    assert outer and not inner
