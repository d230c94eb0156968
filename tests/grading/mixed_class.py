"""A class of all kinds: right, wrong with a name and without, blank, broken, and twice the same."""

from pathlib import Path

import classroom as room

from rlcourse.grading.engine import Options, grade
from rlcourse.grading.report import Report
from rlcourse.grading.running.limits import Limits

SIGN = """
def reinforce_loss(logprobs, advantages, mask):
    return (advantages.detach() * (logprobs * mask).sum(1)).mean()
"""
OTHER_SIGN = """
def reinforce_loss(logprobs, advantages, mask):
    rows = torch.where(mask.bool(), logprobs, torch.zeros_like(logprobs)).sum(dim=-1)
    return torch.mean(rows * advantages.detach())
"""
# Two ways to write what no mistake declares: each log-prob times the length of its row
UNNAMED = """
def reinforce_loss(logprobs, advantages, mask):
    lengths = mask.sum(1).to(logprobs.dtype) + 2
    return -(advantages.detach() * (logprobs * mask).sum(1) * lengths).mean()
"""
UNNAMED_TOO = """
def reinforce_loss(logprobs, advantages, mask):
    total = 0.0
    for row, a, m in zip(logprobs, advantages.detach(), mask):  # <script>alert(1)</script>
        total = total - a * (row * m).sum() * (m.sum() + 2)
    return total / len(logprobs)
"""
CUBED = """
def reinforce_loss(logprobs, advantages, mask):
    return -(advantages.detach() ** 3 * (logprobs * mask).sum(1)).mean() * 0.37 - 0.11
"""
RAISES = """
def reinforce_loss(logprobs, advantages, mask):
    return -(advantages.reshape(3, 99) * logprobs).mean()
"""
SYNTAX = "def reinforce_loss(logprobs, advantages, mask)\n    return 0"
ENDLESS = "def reinforce_loss(logprobs, advantages, mask):\n    while True:\n        pass"
IMPORTS = "from rlcourse.algorithms import reinforce_loss"
ANSWERS = {
    "ada": {},
    "bob": {"reinforce_loss": SIGN},
    "cyd": {"reinforce_loss": OTHER_SIGN},
    "dan": {"reinforce_loss": UNNAMED},
    "eve": {"reinforce_loss": UNNAMED_TOO},
    "fay": {"reinforce_loss": CUBED},
    "gus": {"reinforce_loss": RAISES},
    "hal": {"reinforce_loss": SYNTAX},
    "ida": {"reinforce_loss": ENDLESS},
    "jon": {"reinforce_loss": IMPORTS},
    "kim": {},  # has only the stubs
    "leo": {},  # is no notebook
}
LIMITS = Limits(step=2, submission=60, patience=10)


def hand_in(course: Path) -> None:
    """What everybody has written, in the directory where it is collected."""
    for student, answers in ANSWERS.items():
        room.submit(course, student, room.with_answers(room.solved(course), **answers))
    room.submit(course, "kim", room.released(course))
    room.submit(course, "leo", "not a notebook")


def graded(course: Path) -> Report:
    hand_in(course)
    return grade("02", course=course, options=Options(limits=LIMITS, jobs=2))
