"""Limits count work and no waiting for a busy machine; what was answered in time counts."""

import signal
import sys
import tempfile
from pathlib import Path

import classroom as room
import pytest
import torch

from rlcourse.checks.calling import Facts, Opaque
from rlcourse.checks.case import Case
from rlcourse.exercises import all as all_exercises
from rlcourse.grading.running import protocol
from rlcourse.grading.running.library import write_library
from rlcourse.grading.running.limits import Limits
from rlcourse.grading.running.sandbox import Sandbox
from rlcourse.grading.running.steps import Cell, ExamRequest
from rlcourse.grading.untrusted import worker

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
    """(how it ended, the outcome of each case that was answered)."""
    session.names["f"] = function
    said: list[dict] = []
    end = session.sit_exam(
        {"function": "f", "cases": CASES}, worker.Time(processor, wall), said.append
    )
    assert end.pop("over") and isinstance(said.pop(0)["facts"], Facts)
    return end, {part["case"]: part["outcome"] for part in said}


def test_a_function_is_called_once_for_each_question(session):
    seen = []
    end, outcomes = sit(session, lambda x: seen.append(float(x)) or x)
    assert seen == [float(i) for i in range(len(CASES))] == list(outcomes)
    assert end == {"late": False, "memory": False, "borrowed": ""}


def test_what_was_answered_in_time_counts(session):
    def endless_at_five(x):
        while x == 5:
            pass
        return x

    end, outcomes = sit(session, endless_at_five, processor=0.3)
    assert end["late"] and list(outcomes) == [0, 1, 2, 3, 4]


def test_an_answer_that_swallows_the_interruption_is_not_asked_for_more(session):
    def deaf(x):
        try:
            while x == 5:
                pass
        except:  # noqa: E722
            return x
        return x

    end, outcomes = sit(session, deaf, processor=0.3)
    assert end["late"] and outcomes[4].error is None and 6 not in outcomes


def test_an_answer_that_cannot_be_sent_costs_its_own_case(session):
    def large(x):
        return torch.zeros(1).expand(2**40) if x == 5 else x

    session.names["f"] = large
    said: list[dict] = []

    def say(part):
        protocol.dumps(part)
        said.append(part)

    session.sit_exam({"function": "f", "cases": CASES}, worker.Time(60, 600), say)
    lost = [p["case"] for p in said[1:] if isinstance(p["outcome"].value, Opaque)]
    assert lost == [5] and len(said) == 1 + len(CASES)
    assert not any(part["outcome"].error for part in said[1:])  # nor is it called a lack of memory


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


@pytest.fixture(scope="module")
def sandbox():
    limits = Limits(step=1.0, grace=0.5, submission=60)
    with tempfile.TemporaryDirectory(prefix="rlcourse-test-") as directory:
        root = Path(directory)
        root.chmod(0o755)
        write_library(root / "library", [])
        with Sandbox(root / "library", root / "server", limits=limits) as sandbox:
            yield sandbox


FATAL = {
    "a crash": "import ctypes; ctypes.string_at(0)",
    "an exit": "import os; os._exit(0)",
    "a loop that hears nothing": (
        "import signal\n    signal.setitimer(signal.ITIMER_PROF, 0)\n"
        "    signal.setitimer(signal.ITIMER_REAL, 0)\n    while True: pass"
    ),
    "a forged answer": "import os; os.write(3, bytes(8)); os._exit(0)",
}


@pytest.mark.parametrize("how", FATAL)
def test_cases_answered_before_the_process_is_lost_count(sandbox, how):
    """Five of twelve, of a function whose sixth case ends its process; and what follows goes on."""
    if sys.platform != "linux":
        pytest.skip("the sandbox is Linux's")
    source = f"def f(x):\n    if x != 5: return x\n    {FATAL[how]}"
    order = {"do": "exam", "function": "f", "cases": CASES, **sandbox.limits.seconds}
    exam = ExamRequest("check_f", protocol.dumps(order), len(CASES))
    transcript = sandbox.run([Cell("f", source), exam, Cell("next", "print('on')")])
    answer = transcript.exams["check_f"]
    values = [None if outcome.error else float(outcome.value) for outcome in answer.outcomes]
    assert values == [0, 1, 2, 3, 4] + [None] * 7
    assert {outcome.error.type for outcome in answer.outcomes[5:]} == {"NoAnswer"}
    assert [incident.where for incident in transcript.incidents] == ["check_f"]
    assert transcript.cells["next"].printed == "on\n"
