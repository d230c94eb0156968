"""One bug is charged once, and what is imported is not written."""

import functools
import types

import pytest
import torch

import rlcourse.algorithms
from rlcourse import check, exercises
from rlcourse.authoring import stubs
from rlcourse.checks.asking.borrowed import Borrowing, replaced
from rlcourse.checks.asking.calling import call, call_all, describe, written
from rlcourse.checks.judging import testing
from rlcourse.checks.judging.exam import Exam

LIBRARY = rlcourse.algorithms.reinforce_loss
SIGN = """
def reinforce_loss(logprobs, advantages, mask):
    return (advantages.detach() * (logprobs * mask).sum(dim=1)).mean()
"""
STUB = """
def reinforce_loss(logprobs, advantages, mask):
    raise NotImplementedError()
"""
STEP = """
def loss_of(policy, batch):
    return reinforce_loss(policy.logprobs(batch), batch.rewards, batch.mask)

def reinforce_step(policy, optimizer, batch, max_grad_norm=1.0):
    optimizer.zero_grad()
    loss = loss_of(policy, batch)
    loss.backward()
    torch.nn.utils.clip_grad_norm_(policy.parameters(), max_grad_norm)
    optimizer.step()
    return loss.item()
"""
UNCLIPPED = STEP.replace("    torch.nn.utils.clip_grad_norm_", "    pass  # ")


@pytest.fixture(autouse=True)
def home(tmp_path, monkeypatch):
    monkeypatch.setenv("RLCOURSE_HOME", str(tmp_path))
    monkeypatch.delenv("NBGRADER_EXECUTION", raising=False)


def notebook(*cells: str) -> dict:
    names = {"torch": torch, "Tensor": torch.Tensor}
    for cell in cells:
        exec(cell, names)
    return names


def outcome(result) -> tuple:
    return result.passed, result.score, result.mistake


@pytest.mark.parametrize("hidden", [False, True])
@pytest.mark.parametrize(
    ("loss", "state"),
    [
        (SIGN, "fails its own check"),
        (STUB, "is not written yet"),
        ("", "is not defined"),
    ],
)
def test_a_right_function_on_a_wrong_one_has_its_points_and_says_so(loss, state, hidden):
    names = notebook(loss, STEP)
    before = dict(names)
    result = check(names["reinforce_step"], hidden=hidden)
    assert result.passed and result.points == 3 and result.once == ("reinforce_loss",)
    assert "right, once `reinforce_loss` is · 3 points" in result.message
    assert f"your reinforce_loss, which {state}" in result.message
    assert "right, once <code>reinforce_loss</code> is" in result._repr_html_()
    assert result.as_json()["once"] == ["reinforce_loss"]
    assert names == before  # the right one is gone again


def test_of_two_faults_the_second_is_named_and_charged_as_if_the_first_were_none():
    alone = notebook(stubs.solution(LIBRARY, marks=False), UNCLIPPED)
    expected = check(alone["reinforce_step"], seed=5)
    result = check(notebook(SIGN, UNCLIPPED)["reinforce_step"], seed=5)
    assert not result.passed and outcome(result) == outcome(expected)
    said = (
        "It was checked with a right reinforce_loss in place of yours, which fails its own check."
    )
    assert said in result.message


def test_a_test_is_not_judged_beside_the_function_that_it_tests():
    names = notebook("""
def dpo_loss(*arguments, **named):
    raise NotImplementedError

def test_dpo_loss(dpo_loss):
    numbers = torch.linspace(-1, 1, 12).double().sin().view(4, 3)
    assert torch.allclose(dpo_loss(*numbers, 0.3), globals()["dpo_loss"](*numbers, 0.3))
    dpo_loss_of_mine
""")
    result = check(names["test_dpo_loss"], seed=0)
    assert result.score == 0 and not result.once


def builds_on(function, exercise) -> list[str]:
    return [n for n in exercises.above(exercise.name) if n in describe(function).uses]


BUILDING = [
    (exercise, function)
    for exercise in exercises.all()
    for function in (exercise.reference, *exercise.alternatives)
    if not exercise.suspects and builds_on(function, exercise)
]


def test_nothing_builds_on_what_stands_below_it():
    for exercise in exercises.all():
        same = [n for n in exercises.names() if exercises.get(n).lesson == exercise.lesson]
        below = set(same[same.index(exercise.name) + 1 :])
        assert not below & set(describe(exercise.reference).uses), exercise.name
    assert len(BUILDING) > 15


@pytest.mark.parametrize(
    ("exercise", "function"), BUILDING, ids=[f"{e.name}-{f.__name__}" for e, f in BUILDING]
)
def test_a_stand_in_for_the_reference_is_as_good_as_the_reference(exercise, function):
    """On all cases, hidden ones included, and to the last bit: grading and check agree."""
    others = [exercises.get(name).reference for name in builds_on(function, exercise)]
    namespace = written(function).__globals__
    stand_ins = {
        other.__name__: call_stand_in(testing.standing_for(other, 2**31 + i, other))
        for i, other in enumerate(others)
    }
    exam = Exam(exercise, seed=1, hidden=True)
    with replaced(namespace, stand_ins):
        outcomes = call_all(function, exam.cases, repeat=False)
    assert exam.judge(describe(function), outcomes).passed


def call_stand_in(spec):
    from rlcourse.checks.asking.specs import build

    return build(spec, {})


# What is imported


def wrapped():
    @functools.wraps(LIBRARY)
    def reinforce_loss(*arguments, **named):
        return LIBRARY(*arguments, **named)

    return reinforce_loss


def calling(*arguments, **named):
    return rlcourse.algorithms.reinforce_loss(*arguments, **named)


COPY = LIBRARY.__code__.replace(co_name="mine")
IMPORTED = {
    "import": LIBRARY,
    "partial": functools.partial(LIBRARY),
    "wraps": wrapped(),
    "call": calling,
    "times one": lambda *a, **k: 1.0 * LIBRARY(*a, **k),
    "copy": types.FunctionType(LIBRARY.__code__, {"torch": torch}, "mine"),
    "changed copy": types.FunctionType(COPY, {"torch": torch}, "mine"),
    "decorated": torch.enable_grad()(LIBRARY),
}


@pytest.mark.parametrize("name", IMPORTED)
def test_the_library_s_own_function_is_no_answer(name):
    result = check(IMPORTED[name], "reinforce_loss")
    assert not result.passed and result.score == 0 and result.borrowed == "reinforce_loss"
    assert "this is the library's own function: write yours" in result.message
    assert result.as_json()["borrowed"] and "write yours" in result._repr_html_()


def test_the_same_text_in_a_notebook_is_an_answer():
    names = notebook(stubs.solution(LIBRARY, marks=False))
    assert check(names["reinforce_loss"]).passed


PAST = STEP.replace("reinforce_loss(", "theirs(")
THEIRS = "from rlcourse.algorithms import reinforce_loss as theirs"


@pytest.mark.parametrize("loss", [SIGN, stubs.solution(LIBRARY, marks=False)])
def test_what_goes_past_one_s_own_function_to_the_library_s_is_no_answer(loss):
    """In grading there is none."""
    result = check(notebook(loss, THEIRS, PAST)["reinforce_step"])
    assert result.score == 0 and "this calls the library's own reinforce_loss" in result.message


def test_every_exercise_s_reference_is_recognized():
    for exercise in exercises.all():
        with Borrowing(exercise.name, {exercise.name: exercise.reference}, {}) as borrowing:
            call(exercise.reference, exercise.draw_cases(seed=0)[0])
        assert borrowing.found == exercise.name
