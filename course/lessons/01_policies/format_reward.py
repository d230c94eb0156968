"""Paying for the form."""

import re
from collections.abc import Iterator

import torch

from rlcourse.checks.declaring import Case, CaseSampler, Sketch

TAGS = ("<think>", "</think>", "<answer>", "</answer>")


ANSWER = "<answer>(.*?)</answer>"


WHOLE = r"<think>.*</think>\s*<answer>.*\d.*</answer>"


def cases(draw: CaseSampler) -> Iterator[Case]:
    n = draw.integer(12, 98)
    good = f"<think>half of {2 * n}</think>\n<answer>{n}</answer>"
    texts = {
        "worked: everything in place": "<think>3 * 6 = 18, 18 - 4 = 14</think> <answer>14</answer>",
        "plain text with a number": f"half of {2 * n} is {n}",
        "an empty text": "",
        "several lines": f"<think>\nhalf of\n{2 * n}\n</think>\n<answer>\n{n}\n</answer>",
        "no number in the answer": f"<think>{n}</think> <answer>unknown</answer>",
        "a number among words": f"<think>so</think> <answer>It is {n} apples.</answer>",
        "a tag twice": f"<think>a <think>b</think> <answer>{n}</answer>",
        "everything twice": f"{good}\n{good}",
        "the instructions' example first": f"As <think>…</think> <answer>…</answer>.\n{good}",
        "an example last": f"{good}\nThat is <answer>…</answer> as asked.",
        "a number between two answers": f"<answer>a</answer> {n} <answer>b</answer>",
        "the answer first": f"<answer>{n}</answer> <think>since half</think>",
        "tags in reverse": f"</think>half<think> </answer>{n}<answer>",
        "only the answer": f"<answer>{n}</answer>",
        "no reasoning ends": f"<think>half <answer>{n}</answer>",
        "an answer that never ends": f"<think>half</think> <answer>{n}",
        "a number outside the answer": f"<think>half</think> <answer>none</answer> {n}",
        "tags alone": "".join(TAGS),
    }
    for label, text in texts.items():
        yield Case(label, {"completions": [text]})
    yield Case("several completions", {"completions": list(texts.values())[: draw.size(3, 5)]})


def line_by_line(completions):
    rewards = []
    for text in completions:
        earned, end = 0, 0
        for tag in TAGS:
            if text.count(tag) == 1 and text.index(tag) >= end:
                earned += 1
                end = text.index(tag) + len(tag)
        answer = re.search(ANSWER, text, re.DOTALL)
        if answer and re.search("[0-9]", answer.group(1)):
            earned += 1
        rewards.append(earned / 10)
    return torch.tensor(rewards)


def _format_by_split(completions):
    rewards = []
    for text in completions:
        earned, rest = 0.0, text
        for tag in ("<think>", "</think>", "<answer>", "</answer>"):
            if text.count(tag) == 1 and tag in rest:
                earned += 0.1
                rest = rest.split(tag, 1)[1]
        answers = re.findall(r"<answer>([\s\S]*?)</answer>", text)
        earned += 0.1 * bool(answers and re.search(r"\d", answers[0]))
        rewards.append(earned)
    return torch.tensor(rewards)


sketch = Sketch(line_by_line)
alternatives = (_format_by_split,)
