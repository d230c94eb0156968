"""Rewards that can be checked: rules that read a completion and return a number.

A verifiable reward replaces the human judge of RLHF by a program (Lambert et al. 2024, "Tülu 3",
section 6; DeepSeek-AI 2025, "DeepSeek-R1", section 2.2.2). It is only as good as its parser: what
the parser misreads, training will find.
"""

import re
from collections.abc import Callable, Sequence

import torch
from torch import Tensor

from rlcourse.tasks.numbers import NUMBER, exact_number, final_number, numbers_in


def extract_answer(text: str) -> str | None:
    """The number after the last ``####``, in one canonical spelling.

    "1,234" → "1234", "$14.00" → "14", "3.50" → "3.5", ".5" → "0.5", "-3" → "-3", "-$5" → "-5",
    "-0" → "0"; None without a mark, and where the last one is not followed by a number at once
    (spaces, a sign and `$` may stand between). What stands behind it is not read: "1/2" → "1".
    Two answers are equal exactly when these strings are.
    Source: the answer format of GSM8K (Cobbe et al. 2021).
    """
    _, mark, tail = text.rpartition("####")
    number = re.match(r"([-−$\s]*)([0-9][0-9,]*(?:\.[0-9]+)?|\.[0-9]+)", tail) if mark else None
    if number is None:
        return None
    prefix, digits = number.groups()
    whole, _, fraction = digits.replace(",", "").partition(".")
    canonical = whole.lstrip("0") or "0"
    if fraction.rstrip("0"):
        canonical += "." + fraction.rstrip("0")
    negative = ("-" in prefix or "−" in prefix) and canonical != "0"
    return "-" + canonical if negative else canonical


def extract_tagged_answer(text: str) -> str | None:
    """The same canonical number, from the last complete ``<answer>…</answer>``.

    None where there is none, or where the last one does not begin with a number. Where a ``####``
    stands in it, the number follows that: ``<answer>#### 34</answer>`` holds 34.
    Source: the response template of DeepSeek-R1 (DeepSeek-AI 2025, table 1).
    """
    tagged = re.findall(r"<answer>((?:(?!<answer>).)*?)</answer>", text, flags=re.DOTALL)
    return extract_answer("####" + tagged[-1]) if tagged else None


def extract_boxed_answer(text: str) -> str | None:
    r"""The one number in the last ``\boxed{…}``, as `exact_number` spells it.

    "1,250" → "1250", "$3.50" → "3.5", "x = 72 km" → "72", "85%" → "85". The box ends at
    the brace that closes it. In it ``\frac{3}{4}`` and ``\dfrac{3}{4}`` are 3/4, which is
    "0.75", and ``2\frac{1}{2}`` is "2.5". These change nothing: braces, ``\text``,
    ``\mathrm``, ``\%``, ``\,``, and the backslash of ``\$``. None where any other
    backslash or a ``^`` is left, for that would have to be computed; where the last box is
    not closed; and where it does not hold exactly one number.
    Source: the answer format of MATH (Hendrycks et al. 2021).
    """
    _, mark, box = text.rpartition(r"\boxed{")
    depth, end = 1, 0
    while mark and depth and end < len(box):
        depth += (box[end] == "{") - (box[end] == "}")
        end += 1
    if depth:
        return None
    inside = re.sub(r"(?<=[0-9])(?=\\d?frac)", " ", box[: end - 1])  # 2 1/2, not 21/2
    inside = re.sub(r"\\d?frac\{([0-9]+)\}\{([0-9]+)\}", r"\1/\2", inside)
    inside = re.sub(r"\\(?:text|mathrm)\b|\\[%,]|[{}]", "", inside).replace(r"\$", "$")
    numbers = numbers_in(inside)
    if "\\" in inside or "^" in inside or len(numbers) != 1:
        return None
    return exact_number(numbers[0])


def extract_lenient_answer(text: str) -> str | None:
    r"""The final number however it was given: marked, tagged, boxed, or else the last one there is.

    The canonical number after ``####``, in ``<answer>…</answer>`` or in ``\boxed{…}``, in this
    order of trust; without any of them the last number of the text. What a person would accept is
    close to this; what a training run should reward is not, because it can be earned by rambling.
    What is written so that a part of it would be another number is None: "#### 3,5", "10:30".
    """
    tagged = re.findall(r"<answer>((?:(?!<answer>).)*?)</answer>", text, flags=re.DOTALL)
    for tail in [*text.split("####")[1:][-1:], *tagged[-1:]]:
        if number := re.match(r"[-−$\s]*" + NUMBER, tail):
            return exact_number(number[0])
    return final_number(text)


def extract_strict_tagged_answer(text: str) -> str | None:
    """The number of a text that begins ``<think>…</think>…<answer>N</answer>``, or None.

    Nothing may stand before ``<think>``. Between ``<answer>`` and ``</answer>`` there must be one
    run of digits and no other; what else stands there is not read, a sign least of all. So "-14" is
    14, while "1,500" and "14.50" have two runs each: None.
    Source: the rule of the setting that ``gsm8k_smollm2_1.7b_published`` follows.
    """
    number = re.match(
        r"<think>.*?</think>.*?<answer>[^0-9]*([0-9]+)[^0-9]*</answer>", text, flags=re.DOTALL
    )
    return extract_answer("####" + number.group(1)) if number else None


EXTRACTORS = {
    "marked": extract_answer,
    "tagged": extract_tagged_answer,
    "boxed": extract_boxed_answer,
    "strict_tagged": extract_strict_tagged_answer,
    "lenient": extract_lenient_answer,
}


def correctness_reward(
    completions: Sequence[str],
    answers: Sequence[str],
    extract: Callable[[str], str | None] = extract_answer,
) -> Tensor:
    """1 where a completion's final number equals its reference answer's, else 0 → (N,) float.

    `answers` are reference solutions in GSM8K's format, one per completion, so they are always read
    with `extract_answer`; `extract` reads the completions. A completion without a number earns 0.
    """
    rewards = []
    for completion, answer in zip(completions, answers, strict=True):
        given = extract(completion)
        rewards.append(float(given is not None and given == extract_answer(answer)))
    return torch.tensor(rewards)


def format_reward(completions: Sequence[str]) -> Tensor:
    """Up to 0.5 for ``<think>…</think> <answer>N</answer>``, tenth by tenth → (N,) float.

    0.1 for each of the four tags that occurs exactly once and after the tags that earned before it;
    0.1 more if the first ``<answer>`` and the ``</answer>`` that follows it have a digit between
    them, whether or not these two earned. Everything may span several lines.
    Source: the format reward of DeepSeek-R1 (2025, section 2.2.2), made gradual.
    """
    rewards = []
    for text in completions:
        earned, end = 0, 0
        for tag in ("<think>", "</think>", "<answer>", "</answer>"):
            if text.count(tag) == 1 and text.index(tag) >= end:
                earned += 1
                end = text.index(tag) + len(tag)
        inside = re.search(r"<answer>(.*?)</answer>", text, flags=re.DOTALL)
        if inside and re.search(r"[0-9]", inside.group(1)):
            earned += 1
        rewards.append(earned / 10)
    return torch.tensor(rewards)


def strict_format_reward(completions: Sequence[str]) -> Tensor:
    """0.5 where `extract_strict_tagged_answer` finds a number, 0 elsewhere → (N,) float.

    The same best reward as `format_reward`, with nothing between: all or nothing.
    """
    return torch.tensor(
        [0.0 if extract_strict_tagged_answer(text) is None else 0.5 for text in completions]
    )


def length_reward(lengths: Tensor, shortest: int = 20, longest: int = 250) -> Tensor:
    """0.5 where a completion has `shortest` to `longest` tokens, else 0: (N,) float.

    `lengths` (N,) counts tokens, the end token among them.
    Source: the code of the setting that ``gsm8k_smollm2_1.7b_published`` follows.
    """
    return 0.5 * ((lengths >= shortest) & (lengths <= longest)).float()


FORMATS = {"gradual": format_reward, "all_or_nothing": strict_format_reward}
