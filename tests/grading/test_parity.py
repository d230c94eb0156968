"""Honest submissions get the same points by plain nbgrader and by the isolated grader."""

import shutil
from pathlib import Path

import classroom as room
import pytest
from small_courses import write_course
from test_grading import command

from rlcourse.authoring.builder import build
from rlcourse.grading.engine import grade
from rlcourse.grading.judging.judge import _seed

pytestmark = pytest.mark.weekly

# In how many cases of `reinforce_step` the gradient is too small to be clipped depends on what is
# drawn. So both draw the same: our seeds follow from this secret, and plain nbgrader's checks,
# which draw anew each time, are given them.
SECRET = b"parity with plain nbgrader 1"  # in which some of ten such cases agree

HELPERS = """\
import math

def one_hot(action, size):
    return F.one_hot(torch.as_tensor(action), size)
"""
SUBMISSIONS = {
    "perfect": {},
    "unstable": {  # right on most cases, overflows on the extreme ones
        "score_function": "def score_function(logits, action):\n"
        "    e = torch.exp(logits)\n    out = -e / e.sum()\n    out[action] += 1\n    return out",
        "reinforce_loss": "def reinforce_loss(logprobs, advantages, mask):\n"
        "    lengths = mask.sum(1).clamp(min=1)\n"
        "    return -(advantages.detach() * (logprobs * mask).sum(1) / lengths).mean()",
        "reinforce_step": "def reinforce_step(policy, optimizer, batch, max_grad_norm=1.0):\n"
        "    optimizer.zero_grad()\n"
        "    loss = reinforce_loss(policy.logprobs(batch), batch.rewards, batch.mask)\n"
        "    loss.backward()\n    optimizer.step()\n    return loss.item()",
    },
    "typical": {  # gradient lost, rewards not looked up, sign turned
        "exact_policy_gradient": "def exact_policy_gradient(logits, rewards):\n"
        "    p = logits.softmax(-1)\n    return p * rewards",
        "monte_carlo_policy_gradient": "def monte_carlo_policy_gradient(logits, rewards, actions)"
        ":\n    p = logits.softmax(-1)\n"
        "    return sum(one_hot(a, len(p)) - p for a in actions) * rewards.mean() / len(actions)",
        "reinforce_loss": "def reinforce_loss(logprobs, advantages, mask):\n"
        "    total = 0\n    for i in range(len(advantages)):\n"
        "        total -= advantages[i] * logprobs[i][mask[i].bool()].sum().item()\n"
        "    return torch.tensor(total / len(advantages))",
    },
    "crashing": {
        "score_function": "def score_function(logits, action)\n    return logits",
        "exact_policy_gradient": "def exact_policy_gradient(logits, rewards):\n"
        "    return undefined",
        "reinforce_step": "def reinforce_step(policy, optimizer, batch, max_grad_norm=1.0):\n"
        "    loss = reinforce_loss(policy.logprobs(batch), batch.rewards, batch.mask)\n"
        "    loss.backward()\n    optimizer.step()\n    return loss.item()",
    },
    "importing": {
        "reinforce_loss": "from rlcourse.algorithms import reinforce_loss",
        "score_function": "import rlcourse.algorithms\n\ndef score_function(*arguments):\n"
        "    return rlcourse.algorithms.score_function(*arguments)",
    },
}


@pytest.fixture(scope="module")
def both(tmp_path_factory, warm):
    """The same submissions graded on the same cases, by plain nbgrader and by ours: the courses.

    The lesson's own demonstrations are left out, which plain nbgrader would run every time.
    """
    root = tmp_path_factory.mktemp("parity")
    course = room.make_course(root / "ours")
    write_course(course, {room.LESSON: room.without_demos()})
    build(root=root / "ours", progress=False)
    for student, answers in SUBMISSIONS.items():
        notebook = room.with_answers(room.solved(course), **answers)
        room.submit(course, student, room.with_code(notebook, HELPERS))
    room.submit(course, "half", room.solved(course, room.NAMES[:2]))
    room.submit(course, "blank", room.released(course))
    plain = root / "plain" / "course"
    shutil.copytree(course, plain)
    config = (plain / "nbgrader_config.py").read_text()
    (plain / "nbgrader_config.py").write_text(config[: config.index("# Student code runs")])
    seed_hidden_checks(plain / "source" / room.LESSON / f"{room.LESSON}.ipynb")
    (course / ".grading-secret").write_bytes(SECRET)
    command(warm, plain, f"nbgrader generate_assignment {room.LESSON}")
    command(warm, plain, f"nbgrader autograde {room.LESSON}")
    grade("02", course=course)
    return plain, course


def seed_hidden_checks(source: Path) -> None:
    """Write the seeds of our hidden cases into the instructor's notebook."""
    text = source.read_text()
    for name in room.NAMES:
        drawn = f"check({name}, hidden=True"
        assert text.count(f"{drawn})") == 1
        text = text.replace(f"{drawn})", f"{drawn}, seed={_seed(SECRET, name, 'hidden')})")
    source.write_text(text)


@pytest.mark.parametrize("student", [*SUBMISSIONS, "half", "blank"])
def test_points_are_those_of_plain_nbgrader(both, student):
    plain, ours = (room.grades(course, student) for course in both)
    assert ours == {
        name: None if points is None else pytest.approx(points, abs=1e-9)
        for name, points in plain.items()
    }


def test_partial_credit_is_among_what_is_compared(both):
    """Somebody has earned a part of it, in `reinforce_step` by a wrong function on a wrong one."""
    earned = [room.grades(both[0], student) for student in SUBMISSIONS]
    for name in ("score_function", "monte_carlo_policy_gradient", "reinforce_loss"):
        assert any(0 < grades[f"check_{name}"] < room.POINTS[name] for grades in earned), name
    assert 0 < room.grades(both[0], "unstable")["check_reinforce_step"] < 3


def test_one_bug_is_charged_once_and_what_is_imported_is_not_written(both):
    assert room.grades(both[0], "typical")["check_reinforce_step"] == 3
    earned = room.grades(both[0], "importing")
    assert earned["check_score_function"] == earned["check_reinforce_loss"] == 0
    assert earned["check_reinforce_step"] == 3
