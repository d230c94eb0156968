"""While code of a student runs, nothing in reach answers a question that it will be asked."""

import json
import socket
import threading
import time
from dataclasses import dataclass, field

import nbformat
import pytest
from attacks_in_second_runs import NONE, TOOLS, function
from classroom import REPOSITORY, cell_of
from nbformat.v4 import new_code_cell
from shared import one_in
from small_courses import write_course

from rlcourse.authoring.builder import build
from rlcourse.checks.asking import wire
from rlcourse.checks.asking.calling import Facts, Failure, Outcome
from rlcourse.checks.asking.specs import Spec
from rlcourse.courses import shipped
from rlcourse.exercises import all as all_exercises
from rlcourse.grading.confinement.channel import Channel, Closed
from rlcourse.grading.engine import grade
from rlcourse.grading.judging.judge import LessonExam
from rlcourse.grading.judging.marking import run_first, run_rest
from rlcourse.grading.judging.wordless import lines_of, make_wordless
from rlcourse.grading.running.answers import ExamAnswer
from rlcourse.grading.running.limits import Limits
from rlcourse.grading.running.steps import ExamRequest, Transcript

LESSONS = [lesson.name for lesson in shipped().lessons]


@dataclass
class Process:
    """What one process was given: functions by name, what stands in, what lay in the socket."""

    asked: list[str] = field(default_factory=list)
    in_reach: set[str] = field(default_factory=set)
    questions: int = 0
    ahead: int = 0  # messages that came before the one before was answered

    def run(self, channel: Channel) -> None:
        facts = {"facts": Facts("f", uses=("everything",))}
        said = {"ready": True}
        try:
            while True:
                channel.send(wire.dumps(said))
                message = wire.loads(channel.receive())
                self.ahead += channel.has_more(0.0003)
                said = {"over": True}
                if message["do"] == "exam":
                    self.asked.append(message["function"])
                    self.in_reach |= {*message.get("in_place", {})}
                    said = facts
                elif message["do"] == "case":
                    self.questions += 1
                    arguments = message["case"].arguments.values()
                    specs = [a for a in arguments if isinstance(a, Spec) and a.kind == "stand_in"]
                    self.in_reach |= {spec.options["name"] for spec in specs}
                    said = {"outcome": Outcome(value=0.0)}
        except Closed:
            return


class Account:
    """A submission's account, with processes that answer everything alike."""

    limits, end = Limits(), time.monotonic() + 10**6

    def __init__(self):
        self.processes: list[Process] = []

    def open(self) -> Channel:
        ours, theirs = map(Channel, socket.socketpair())
        self.processes.append(Process())
        threading.Thread(target=self.processes[-1].run, args=(theirs,), daemon=True).start()
        return ours

    def close(self, more: float = 0.0) -> None:
        pass


@pytest.mark.slow
@pytest.mark.parametrize("backwards", [False, True])
@pytest.mark.parametrize("lesson", LESSONS)
def test_no_right_function_is_in_reach_beside_its_own_questions_or_before(lesson, backwards):
    """In every lesson, even if every function is wrong and uses all the others."""
    release = nbformat.read(REPOSITORY / "notebooks" / lesson / f"{lesson}.ipynb", as_version=4)
    exam, account = LessonExam(release, b"secret"), Account()
    steps = exam.steps(release)
    exams = [step for step in steps if isinstance(step, ExamRequest)]
    if backwards:  # as who writes all functions in the last cells has it
        steps = [step for step in steps if step not in exams] + exams[::-1]
    run_first(account, steps)
    order = [exercise.name for exercise in exam.exercises.values()]
    everything = dict.fromkeys(order, "is wrong")
    wrong = {step.name: everything for step in steps if isinstance(step, ExamRequest)}
    requests = exam.requests_again(wrong)
    tests = {e.name for e in exam.exercises.values() if e.suspects}
    assert {r.name.removeprefix("check_") for r in requests.values()} & tests == set()
    first = len(account.processes)
    run_rest(account, steps, Transcript(), requests)
    parts = sum(len(step.parts) for step in exams)
    assert len(account.processes) == first + len(requests) + parts
    answered: set[str] = set()  # what an earlier process could have had answered
    for process in account.processes:
        assert not answered & {*process.asked} or {*process.asked} & tests
        answered |= process.in_reach
        assert process.ahead == 0 and process.questions >= len(process.asked)
        if process.in_reach - {"reward"}:  # a reward answers no exercise's question
            (asked,) = process.asked
            assert asked not in process.in_reach
            if asked not in tests:
                assert max(map(order.index, process.in_reach)) < order.index(asked)


def test_what_ran_beside_right_functions_is_told_in_our_words():
    said = "0.6931471805599453"
    lie = Failure(said, said, 3, said, said, said)
    true = Failure("ValueError", said, 2, "  return x", "f", said)
    outcomes = [
        Outcome(error=lie, warnings=(said,), printed=said, refused={"x": lie}),
        Outcome(error=true),
        Outcome(error=Failure("NotImplementedError", "", function="f")),
        Outcome(error=Failure("NoAnswer", "the process ended")),
    ]
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell("def f(x):\n  return x")])
    first = Transcript(exams={"f": ExamAnswer(Facts("f", ("x",)))})
    second = Transcript(exams={"f": ExamAnswer(Facts(said, (said,)), tuple(outcomes))})
    make_wordless(second, ["f"], first, lines_of(notebook))
    answer = second.exams["f"]
    assert said not in str(answer) and answer.facts is first.exams["f"].facts
    errors = [outcome.error for outcome in answer.outcomes]
    assert [error.type for error in errors] == [
        "Exception", "ValueError", "NotImplementedError", "NoAnswer"
    ]  # fmt: skip
    assert (errors[1].line, errors[1].line_number, errors[2].function) == ("  return x", 2, "f")


@pytest.mark.parametrize("lesson", one_in(2, [LESSONS[1], LESSONS[6]]))
def test_who_has_no_right_line_gets_no_point_for_following_through(lesson, tmp_path):
    """The first function fails; the others, judged at the end, look for right ones and questions,
    keep what they find, and play it back."""
    course = write_course(tmp_path / "course", {lesson: None})
    build(root=tmp_path, progress=False)
    names = [e.name for e in all_exercises() if e.lesson == lesson]
    thief = nbformat.read(tmp_path / "notebooks" / lesson / f"{lesson}.ipynb", as_version=4)
    thief.cells.insert(0, new_code_cell(TOOLS))
    for name in names:
        cell_of(thief, name).source = function(name, NONE) if name == names[0] else "x = 1"
    look = (
        "; ".join(names),
        "for message in asked_ahead(): keep(message)",
        "for n, f in right_ones().items(): KEPT.setdefault(n + '!', f)",
    )
    for name in names[1:]:
        kept = f"if KEPT.get({name!r}): return KEPT[{name!r}].pop(0)"
        right = f"return KEPT[{name + '!'!r}](*args, **kwargs)"
        thief.cells.append(new_code_cell(function(name, *look, kept, right)))
    path = course / "submitted" / "thief" / lesson / f"{lesson}.ipynb"
    path.parent.mkdir(parents=True)
    path.write_text(json.dumps(thief))
    (row,) = grade(lesson, course=course).rows
    assert row.status == "graded" and set(row.exercises) == set(names)
    assert row.score == 0, {name: mark["message"] for name, mark in row.exercises.items()}
