"""Submissions whose process lies about what it did, and those that do without chance.

Answers about gradients, changes and repeats cross a pipe from a process that student code owns. So
nothing that it is told may say which answer is due, and what only it can see is worth little.
"""
# Each attack stands as compactly as it can.
# fmt: off

import classroom as room
from attacks import TOTAL, code

from rlcourse.checks.judging.exam import Exam
from rlcourse.checks.judging.partial_credit import ALMOST_CREDIT
from rlcourse.exercises import get

# A loss whose advantages are not detached: right in every number, wrong in one gradient
LEAKS = """
def reinforce_loss(logprobs, advantages, mask):
    return -(advantages * logprobs.masked_fill(~mask.bool(), 0).sum(1)).mean()
"""
# All numbers right, not all of what cannot be seen; and half of the points
MOST = ALMOST_CREDIT * room.POINTS["reinforce_loss"]
HALF = room.POINTS["reinforce_loss"] / 2
CASES = len(Exam(get("reinforce_loss"), 0, hidden=True).cases)
FLAT = HALF * 2 / CASES  # right in the two cases whose gradient is 0
NOT_TWICE = HALF * (CASES - 2) / CASES  # wrong in the two cases that are asked again

PATCH = """
import sys
from rlcourse.checks.asking import calling
worker = sys.modules["rlcourse.grading.untrusted.worker"]
honest = calling._call
def lie(fn, case, repeat=False):
    outcome = honest(fn, case)
    LINES
    return outcome
worker.call = calling.call = lie
"""


def lie(name: str, lines: str, deserved: float = MOST, function: str = LEAKS) -> None:
    """An attack that alters every outcome before it is sent."""
    source = PATCH.replace("LINES", lines.strip().replace("\n", "\n    "))
    code(name, "claiming", source, deserved=deserved, reinforce_loss=function)


SET = "object.__setattr__(outcome, {!r}, {})"
lie("no gradient in what the case calls constant",
    "for n in case.constants: outcome.gradients[n] = None")
lie("gradients only of what the case calls differentiable",
    "for n in list(outcome.gradients):\n    if n not in case.differentiable: "
    "outcome.gradients[n] = None", FLAT)
lie("gradients left out where a label speaks of a graph",
    "if 'graph' in case.label: outcome.gradients.clear()")
lie("no gradients at all", SET.format("gradients", "{}"), FLAT)
lie("a gradient of zeros in everything",
    "for n, g in outcome.gradients.items():\n    if g is not None: "
    "outcome.gradients[n] = g * 0", FLAT)
lie("the argument for its gradient",
    "for n in outcome.gradients: outcome.gradients[n] = case.arguments[n]", deserved=0.0)
lie("repeatable, it says", SET.format("repeatable", "True"))
lie("an error of its own choosing where the case says that one is due",
    "from rlcourse.checks.asking.calling import Failure\n"
    "if case.raises: " + SET.format("error", "Failure('ValueError', '')"))

# A loss with noise in it, which is never the same twice
NOISY = """
import torch
def reinforce_loss(logprobs, advantages, mask):
    loss = -(advantages.detach() * logprobs.masked_fill(~mask.bool(), 0).sum(1)).mean()
    return loss * (1 + 1e-7 * torch.rand(()).to(loss.dtype))
"""
lie("noise, and repeatable, it says", SET.format("repeatable", "True"), NOT_TWICE, NOISY)
lie("noise, and the second call never made", SET.format("repeatable", "True") + "\n"
    "calling.repeats = lambda a, b: True", NOT_TWICE, NOISY)

# Changed arguments
CHANGES = """
def reinforce_loss(logprobs, advantages, mask):
    weights = advantages.detach().clone()
    loss = -(weights * logprobs.masked_fill(~mask.bool(), 0).sum(1)).mean()
    advantages.detach().zero_()
    return loss
"""
code("arguments zeroed after use, and it says so", "claiming", "", deserved=MOST,
     reinforce_loss=CHANGES)
lie("changed arguments, named as others", SET.format("changed", "('mask',)"), MOST, CHANGES)
lie("parameters after a step, taken from nowhere",
    "outcome.after.update({'policy.logits': 'right', 'x.y': 1.0})", MOST)

# Answers from other questions
lie("the answer to the question before",
    "kept = getattr(calling, 'kept', outcome); calling.kept = outcome; outcome = kept", 0.0)
lie("one answer to all questions",
    "outcome = getattr(calling, 'kept', outcome); calling.kept = outcome", 0.0)
code("what the questions tell", "claiming", """
import sys
worker = sys.modules["rlcourse.grading.untrusted.worker"]
def look(fn, case):
    told = {k: v for k, v in vars(case).items() if k not in ("arguments", "tracked")}
    if any(told.values()): print("LEAK", told)
    for text in map(str, case.arguments):
        if "worked" in text or "hidden" in text: print("LEAK", text)
    return honest(fn, case)
honest, worker.call = worker.call, look
""", deserved=TOTAL, perfect=True)
