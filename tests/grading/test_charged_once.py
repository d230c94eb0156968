"""One bug is charged once, for nobody's profit: a class of honest students and of others, graded.

Right functions are asked for by stand-ins, in a process that answers nothing else.
"""

import shutil

import classroom as room
import pytest
from mixed_class import SIGN

from rlcourse.grading.engine import Options, grade
from rlcourse.grading.running.limits import Limits

pytestmark = pytest.mark.slow

SUBMISSIONS = {
    "sign": {"reinforce_loss": SIGN},
    "stub": {"reinforce_loss": "def reinforce_loss(*a):\n    raise NotImplementedError"},
    "borrows": {
        "reinforce_loss": "def reinforce_loss(*a):\n    raise NotImplementedError\n\n"
        "from rlcourse import borrow\nborrow(reinforce_loss)"
    },
    "endless": {"reinforce_loss": "def reinforce_loss(*a):\n    while True:\n        pass"},
    "imports": {"reinforce_loss": "from rlcourse.algorithms import reinforce_loss"},
    "wraps": {
        "reinforce_loss": "import rlcourse.algorithms as library\n\n"
        "def reinforce_loss(*a, **k):\n    return library.reinforce_loss(*a, **k)"
    },
    "copies": {
        "reinforce_loss": "import types\nfrom rlcourse.algorithms import reinforce_loss as theirs\n"
        "reinforce_loss = types.FunctionType(theirs.__code__.replace(co_name='mine'), globals())"
    },
    "goes-past-its-own": {
        "reinforce_step": "from rlcourse.algorithms import reinforce_loss as theirs\n\n"
        + room.solution("reinforce_step").replace(" reinforce_loss(", " theirs(")
    },
    # Those who would profit
    "hides-the-work-below": {
        "reinforce_loss": "def reinforce_loss(policy, optimizer, batch, max_grad_norm=1.0):\n"
        "    optimizer.zero_grad()\n"
        "    sums = (policy.logprobs(batch) * batch.mask).sum(1)\n"
        "    loss = -(batch.rewards * sums).mean()\n    loss.backward()\n"
        "    torch.nn.utils.clip_grad_norm_(policy.parameters(), max_grad_norm)\n"
        "    optimizer.step()\n    return loss.item()\n",
        "reinforce_step": "def reinforce_step(*a, **k):\n"
        "    return sum([reinforce_loss(*a, **k) for _ in '12']) / 2",
    },
    "names-what-it-does-not-use": {
        "reinforce_loss": SIGN,
        "reinforce_step": "def reinforce_step(policy, optimizer, batch, max_grad_norm=1.0):\n"
        "    reinforce_loss\n    return 0.0",
    },
    "asks-without-end": {
        "reinforce_loss": SIGN,
        "reinforce_step": "def reinforce_step(policy, optimizer, batch, max_grad_norm=1.0):\n"
        "    while True:\n"
        "        reinforce_loss(policy.logprobs(batch), batch.rewards, batch.mask)",
    },
}


@pytest.fixture(scope="module")
def graded(template, tmp_path_factory):
    root = tmp_path_factory.mktemp("once") / "repository"
    shutil.copytree(template.parent, root)
    course = root / "course"
    for student, answers in SUBMISSIONS.items():
        room.submit(course, student, room.with_answers(room.solved(course), **answers))
    options = Options(limits=Limits(step=1, submission=60, patience=20, look=0.5), jobs=2)
    report = grade("02", course=course, options=options)
    return course, {row.student: row for row in report.rows}


def earned(graded, student: str) -> dict[str, float]:
    return {name: mark["points"] for name, mark in graded[1][student].exercises.items()}


def said(graded, student: str, name: str) -> str:
    cell = room.cell_of(room.autograded(graded[0], student), f"check_{name}")
    return cell.outputs[0].data["text/plain"]


@pytest.mark.parametrize("student", ["sign", "stub", "borrows", "endless"])
def test_a_right_function_on_a_wrong_one_has_all_its_points(graded, student):
    assert earned(graded, student) | {"reinforce_loss": 0} == room.POINTS | {"reinforce_loss": 0}
    assert earned(graded, student)["reinforce_loss"] < 1
    assert graded[1][student].exercises["reinforce_step"]["once"] == ("reinforce_loss",)
    message = said(graded, student, "reinforce_step")
    assert "right, once `reinforce_loss` is · 3 points" in message and "timed out" not in message


def test_what_goes_past_one_s_own_function_is_told_so(graded):
    found = earned(graded, "goes-past-its-own")
    assert (found["reinforce_loss"], found["reinforce_step"]) == (4, 0)
    message = said(graded, "goes-past-its-own", "reinforce_step")
    assert "this calls the library's own reinforce_loss: call yours" in message


@pytest.mark.parametrize("student", ["imports", "wraps", "copies"])
def test_what_is_imported_is_not_written(graded, student):
    row = graded[1][student]
    assert earned(graded, student)["reinforce_loss"] == 0 and row.score == 11
    assert row.status == "imported"
    assert row.incidents == ("imported (reinforce_loss: the library's own reinforce_loss)",)
    assert "the library's own function: write yours" in said(graded, student, "reinforce_loss")


@pytest.mark.parametrize(
    "student",
    [
        "hides-the-work-below",
        "names-what-it-does-not-use",
        "asks-without-end",
    ],
)
def test_whoever_would_profit_from_it_does_not(graded, student):
    found = earned(graded, student)
    assert found["reinforce_loss"] < 1 and found["reinforce_step"] == 0
