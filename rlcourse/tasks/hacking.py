"""A reward that asks to be gamed, how to game it, and a reward that resists.

Every program that reads answers is a proxy for "the problem was solved". Where the two differ,
optimization finds the difference (Skalse et al. 2022, "Defining and characterizing reward
gaming").
"""

import re
from collections.abc import Sequence
from fractions import Fraction

import torch
from torch import Tensor

from rlcourse.tasks.rewards import extract_answer

_NUMBER = r"\$?[0-9]+(?:,[0-9]{3})*(?:\.[0-9]+)?"
_CALCULATION = re.compile(rf"(-?{_NUMBER}(?:\s*[-+*/]\s*{_NUMBER})+)\s*=\s*(-?{_NUMBER})")


def flawed_reward(completions: Sequence[str], answers: Sequence[str]) -> Tensor:
    """A well-meant reward → (N,) float, at most 1.

    0.6 where the right number occurs in the text, 0.3 for the mark ``####``, 0.1 for showing work:
    an equals sign. `answers` are reference solutions in GSM8K's format.
    """
    rewards = []
    for text, answer in zip(completions, answers, strict=True):
        found = extract_answer(answer) in re.findall(r"-?[0-9]+(?:\.[0-9]+)?", text)
        rewards.append(0.6 * found + 0.3 * ("####" in text) + 0.1 * ("=" in text))
    return torch.tensor(rewards)


def calculations(text: str) -> list[tuple[bool, str | None]]:
    """The calculations ``a + b = c`` in a text: is it true, and the canonical result it claims.

    "3 * 6 = 18, 18 - 4 = 15" → [(True, "18"), (False, "15")]. Both may have several operations.
    """
    found = _CALCULATION.findall(text)
    return [
        (_value(left) == _value(right), extract_answer(f"#### {right}")) for left, right in found
    ]


def _value(expression: str) -> Fraction | None:
    """The exact value of numbers joined by + - * /, * and / first; None for a division by 0."""
    tokens = re.findall(rf"{_NUMBER}|[-+*/]", re.sub(r"[$,]", "", expression))
    if tokens[0] == "-":
        tokens = ["0", *tokens]
    total, term, sign = Fraction(0), Fraction(tokens[0]), 1
    for operator, number in zip(tokens[1::2], map(Fraction, tokens[2::2]), strict=True):
        if operator == "/" and number == 0:
            return None
        if operator in "*/":
            term = term * number if operator == "*" else term / number
        else:
            total, term, sign = total + sign * term, number, 1 if operator == "+" else -1
    return total + sign * term


def hacking_completions(questions: Sequence[str]) -> list[str]:
    """For each question a text that earns all of `flawed_reward` and solves nothing → N strings.

    It must earn 1 whatever the answer is, from 0 to 999, without a look at the question; and it
    must not *declare* any number, so that `correctness_reward` pays 0 whatever the answer is.
    """
    every_number = " ".join(str(n) for n in range(1000))
    return [f"= {every_number} ####"] * len(questions)


def robust_reward(completions: Sequence[str], answers: Sequence[str]) -> Tensor:
    """1 for a completion that shows its work and is right, else 0 → (N,) float.

    All of this must hold: the mark ``####`` occurs exactly once; nothing but a number follows it
    to the end of the text (a minus, a currency sign, commas and decimals belong to it, white space
    does not matter), and the number is right; there is at least one calculation, and every one is
    true; the last calculation's result is the number declared.
    """
    rewards = []
    for text, answer in zip(completions, answers, strict=True):
        work, _, declared = text.partition("####")
        number = extract_answer("####" + declared)
        only_a_number = re.fullmatch(r"[-−$\s]*[0-9.,]+\s*", declared) is not None
        steps = calculations(work)
        rewards.append(
            float(
                only_a_number
                and number == extract_answer(answer)
                and len(steps) > 0
                and all(is_true for is_true, _ in steps)
                and steps[-1][1] == number
            )
        )
    return torch.tensor(rewards)
