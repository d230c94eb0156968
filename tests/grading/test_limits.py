"""Limits count work and no waiting for a busy machine; what was answered in time counts."""

import signal
import sys

import classroom as room
import pytest
import torch

from rlcourse.checks.asking import wire
from rlcourse.checks.asking.calling import Facts, Opaque
from rlcourse.checks.asking.case import Case
from rlcourse.grading.running.limits import Limits
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


def asking(said: list[dict]):
    """The grader's part: takes what is said, and asks the next question."""
    questions = iter([*({"do": "case", "case": case} for case in CASES), {"do": "end"}])

    def exchange(part: dict) -> dict:
        wire.dumps(part)
        said.append(part)
        return next(questions)

    return exchange


def sit(session, function, processor=60.0, wall=600.0):
    """(how it ended, the outcomes in the order in which the questions were asked)."""
    session.names["f"] = function
    said: list[dict] = []
    end = session.sit_exam({"function": "f"}, worker.Time(processor, wall), asking(said))
    assert end.pop("over") and isinstance(said.pop(0)["facts"], Facts)
    return end, [part["outcome"] for part in said]


def test_a_function_is_called_once_for_each_question(session):
    seen = []
    end, outcomes = sit(session, lambda x: seen.append(float(x)) or x)
    assert seen == [float(i) for i in range(len(CASES))] == [float(o.value) for o in outcomes]
    assert end == {"late": False, "memory": False, "borrowed": ""}


def test_what_was_answered_in_time_counts(session):
    def endless_at_five(x):
        while x == 5:
            pass
        return x

    end, outcomes = sit(session, endless_at_five, processor=0.3)
    assert end["late"] and len(outcomes) == 5


def test_an_answer_that_cannot_be_sent_costs_its_own_case(session):
    def large(x):
        return torch.zeros(1).expand(2**40) if x == 5 else x

    _, outcomes = sit(session, large)
    assert [i for i, o in enumerate(outcomes) if isinstance(o.value, Opaque)] == [5]
    assert len(outcomes) == len(CASES)
    assert not any(outcome.error for outcome in outcomes)  # nor is it called a lack of memory


@pytest.mark.slow
def test_a_slow_machine_takes_no_points_and_a_deaf_sleeper_is_killed(sandbox):
    # Three seconds on the clock, and a fraction of them of work: as on a busy machine
    shared = f"import time\n{BURN}end = time.monotonic() + 3\n"
    shared += "while time.monotonic() < end: burn(.01); time.sleep(.03)\nprint('done')"
    deaf = "import time\nwhile True:\n    try: time.sleep(1000)\n    except BaseException: pass"
    hog = f"import signal, time\nsignal.setitimer(signal.ITIMER_PROF, 0)\n{BURN}burn(1000)"
    cells = [Cell("shared", shared), Cell("deaf", deaf), Cell("hog", hog)]
    transcript = room.run(sandbox, cells, Limits(step=1.5, grace=0.5, submission=60, look=0.5))
    assert transcript.cells["shared"].printed == "done\n"
    assert [(i.where, i.status) for i in transcript.incidents] == [
        ("deaf", "timed out"),
        ("hog", "timed out"),
    ]


FATAL = {
    "a crash": "import ctypes; ctypes.string_at(0)",
    "an exit": "import os; os._exit(0)",
    "a loop that hears nothing": (
        "import signal\n    signal.setitimer(signal.ITIMER_PROF, 0)\n"
        "    signal.setitimer(signal.ITIMER_REAL, 0)\n    while True: pass"
    ),
    "a forged answer": "import os; os.write(3, bytes(8)); os._exit(0)",
}


@pytest.mark.slow
@pytest.mark.parametrize("how", FATAL)
def test_cases_answered_before_the_process_is_lost_count(sandbox, how):
    """Five of twelve, of a function whose sixth case ends its process; and what follows goes on."""
    if sys.platform != "linux":
        pytest.skip("the sandbox is Linux's")
    source = f"def f(x):\n    if x != 5: return x\n    {FATAL[how]}"
    limits = Limits(step=1.0, grace=0.5, submission=60, look=0.3)
    order = wire.dumps({"do": "exam", "function": "f", **limits.seconds})
    questions = tuple(wire.dumps({"do": "case", "case": case}) for case in CASES)
    exam = ExamRequest("check_f", order, questions)
    transcript = room.run(sandbox, [Cell("f", source), exam, Cell("next", "print('on')")], limits)
    answer = transcript.exams["check_f"]
    values = [None if outcome.error else float(outcome.value) for outcome in answer.outcomes]
    assert values == [0, 1, 2, 3, 4] + [None] * 7
    assert {outcome.error.type for outcome in answer.outcomes[5:]} == {"NoAnswer"}
    assert [incident.where for incident in transcript.incidents] == ["check_f"]
    assert transcript.cells["next"].printed == "on\n"
