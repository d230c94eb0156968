"""What holds for every test: one thread, Ctrl-C heard, a policy that trains in milliseconds.

One thread here and in the processes that tests start: the tensors of the tests are small; several
threads only wait for each other, and on a busy machine that took twenty times the work.
"""

import os
import signal

import pytest

os.environ.setdefault("OMP_NUM_THREADS", "1")  # read when torch is first imported
# A shell starts what runs in the background deaf to Ctrl-C, which tests press.
signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture
def policy():
    """See ``echo.echo_policy``; imported here, so that tests without torch need not wait for it."""
    from echo import echo_policy

    return echo_policy()


@pytest.fixture
def task():
    from echo import echo_task

    return echo_task()


@pytest.fixture
def recipe():
    from echo import echo_recipe

    return echo_recipe
