"""Limits count work and no waiting for a busy machine; what was answered in time counts."""

import signal
import sys
import tempfile
from pathlib import Path

import classroom as room
import pytest
import torch

from rlcourse.checks.calling import Case
from rlcourse.exercises import all as all_exercises
from rlcourse.grading import worker
from rlcourse.grading.library import write_library
from rlcourse.grading.sandbox import Cell, Limits, Sandbox

CASES = [Case(f"{i}", {"x": torch.tensor(float(i))}) for i in range(12)]
BURN = "def burn(seconds):\n    end = time.process_time() + seconds\n"
BURN += "    while time.process_time() < end: pass\n"


@pytest.fixture
def session():
    """A notebook's namespace in this process, as the untrusted one sets it up."""
    main = sys.modules["__main__"]
    before = {
        number: signal.signal(number, worker._alarm) for number in (signal.SIGALRM, signal.SIGPROF)
    }
    yield worker.Session()
    sys.modules["__main__"] = main
    for number, handler in before.items():
        signal.signal(number, handler)


def sit(session, function, processor=60.0, wall=600.0):
    session.names["f"] = function
    return session.sit_exam("f", CASES, worker.Time(processor, wall))


def test_a_function_is_called_once_for_each_case_and_again_for_four(session):
    seen = []
    answer = sit(session, lambda x: seen.append(float(x)) or x)
    assert len(seen) == len(CASES) + 4 and not answer["late"]
    assert seen[: len(CASES)] == [float(i) for i in reversed(range(len(CASES)))]
    assert set(seen[len(CASES) :]) == {0.0, 1.0, 10.0, 11.0}
    assert all(outcome.repeatable for outcome in answer["outcomes"])


def test_where_two_answers_differ_every_case_is_asked_again(session):
    calls = iter(range(1000))
    answer = sit(session, lambda x: x + next(calls))
    assert not any(outcome.repeatable for outcome in answer["outcomes"])
    assert next(calls) == 2 * len(CASES)


def test_what_was_answered_in_time_counts_the_counting_cases_first(session):
    def endless_at_five(x):
        while x == 5:
            pass
        return x

    answer = sit(session, endless_at_five, processor=0.3)
    assert answer["late"]
    answered = [i for i, outcome in enumerate(answer["outcomes"]) if outcome.error is None]
    assert answered == [6, 7, 8, 9, 10, 11]


def test_an_answer_that_swallows_the_interruption_is_not_asked_for_more(session):
    def deaf(x):
        try:
            while x == 5:
                pass
        except:  # noqa: E722
            return x
        return x

    answer = sit(session, deaf, processor=0.3)
    assert answer["late"] and answer["outcomes"][4].error.type == "TimeoutError"


def test_who_only_waits_is_interrupted_however_much_processor_time_is_left(session, monkeypatch):
    monkeypatch.setattr(worker, "IDLE_SECONDS", 0.2)
    answer = session.run_cell("cell", "import time; time.sleep(10**6)", worker.Time(60, 600))
    assert answer["late"]


@pytest.mark.slow
def test_a_slow_machine_takes_no_points_and_a_deaf_sleeper_is_killed():
    # Three seconds on the clock, and a fraction of them of work: as on a busy machine
    shared = f"import time\n{BURN}end = time.monotonic() + 3\n"
    shared += "while time.monotonic() < end: burn(.01); time.sleep(.03)\nprint('done')"
    deaf = "import time\nwhile True:\n    try: time.sleep(1000)\n    except BaseException: pass"
    hog = f"import signal, time\nsignal.setitimer(signal.ITIMER_PROF, 0)\n{BURN}burn(1000)"
    cells = [Cell("shared", shared), Cell("deaf", deaf), Cell("hog", hog)]
    limits = Limits(step=1.5, grace=0.5, submission=60)
    with tempfile.TemporaryDirectory(prefix="rlcourse-test-") as directory:
        root = Path(directory)
        root.chmod(0o755)  # another user enters it
        write_library(root / "library", [e for e in all_exercises() if e.lesson == room.LESSON])
        with Sandbox(root / "library", root / "server", limits=limits) as sandbox:
            transcript = sandbox.run(cells)
    assert transcript.cells["shared"].printed == "done\n"
    assert [(i.where, i.status) for i in transcript.incidents] == [
        ("deaf", "timed out"),
        ("hog", "timed out"),
    ]
