"""The steps of a word problem's solution, and a program that checks them.

A completion is a text of lines: calculations ``a + b = c``, and an answer ``#### N`` at the end.
Each line is a *step*. Whether a step is right can be read off the reference solution, which a
program wrote.
"""

import re
from collections.abc import Sequence

import torch
from torch import Tensor

from rlcourse.tasks.rewards import extract_answer

_STEP = re.compile(r"([0-9]+) ([-+*/]) ([0-9]+) = ([0-9]+)")
Calculation = tuple[str, str, str, str]


def step_verdicts(completion: str, answer: str) -> list[float]:
    """1 for each right line of `completion` and 0 for each wrong one, as many as it has lines.

    A line is right if it is a calculation of the reference solution `answer`, with the numbers of a
    sum or product in either order, or the right answer behind ``####``. Lines may come in another
    order than the reference's. Each line of the reference pays once: repeating one earns nothing.
    A different route to the right answer is taken for wrong.
    """
    *work, _ = answer.split("\n")
    open_steps = [_calculation(line) for line in work]
    answered = False
    verdicts = []
    for line in completion.split("\n"):
        step = _calculation(line)
        if step is not None:
            right = step in open_steps
            if right:
                open_steps.remove(step)
        else:
            right = line.startswith("####") and not answered
            right = right and extract_answer(line) == extract_answer(answer)
            answered = answered or right
        verdicts.append(float(right))
    return verdicts


def verdict_table(completions: Sequence[str], answers: Sequence[str]) -> Tensor:
    """`step_verdicts` of each completion as a row, 0 behind its last line → (N, S) float."""
    rows = [step_verdicts(text, a) for text, a in zip(completions, answers, strict=True)]
    longest = max(map(len, rows), default=0)
    return torch.tensor([row + [0.0] * (longest - len(row)) for row in rows])


def prefixes(completion: str) -> list[str]:
    r"""What stands before each line of a completion: "a\nb\n#### c" → ["", "a\n", "a\nb\n"]."""
    lines = completion.split("\n")
    return ["".join(f"{line}\n" for line in lines[:k]) for k in range(len(lines))]


def _calculation(line: str) -> Calculation | None:
    found = _STEP.fullmatch(line)
    if found is None:
        return None
    a, operation, b, result = found.groups()
    if operation in "+*":
        a, b = sorted((a, b), key=int)
    return a, operation, b, result
