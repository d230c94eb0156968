"""Paying for the form."""

import re
from collections.abc import Iterator
from functools import partial

import torch

from rlcourse.checks.calling import Case
from rlcourse.checks.cases import CaseSampler
from rlcourse.checks.exercise import Exercise, Mistake
from rlcourse.checks.sketch import Sketch
from rlcourse.tasks.rewards import format_reward

TAGS = ("<think>", "</think>", "<answer>", "</answer>")
ANSWER = "<answer>(.*?)</answer>"
WHOLE = r"<think>.*</think>\s*<answer>.*\d.*</answer>"


def _format_cases(draw: CaseSampler) -> Iterator[Case]:
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


_edit = Sketch(line_by_line).alone
_tag_if = partial(_edit, "text.count(tag) == 1 and text.index(tag) >= end")
_number_if = partial(_edit, 'answer and re.search("[0-9]", answer.group(1))')
_tenths = partial(_edit, "earned / 10")


def _format_by_positions(completions):
    rewards = torch.zeros(len(completions))
    for i, text in enumerate(completions):
        last = -1
        for tag in ("<think>", "</think>", "<answer>", "</answer>"):
            places = [found.start() for found in re.finditer(re.escape(tag), text)]
            if len(places) == 1 and places[0] > last:
                rewards[i] += 0.1
                last = places[0]
        _, opened, rest = text.partition("<answer>")
        inside, closed, _ = rest.partition("</answer>")
        if opened and closed and any(character.isdigit() for character in inside):
            rewards[i] += 0.1
    return rewards


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


EXERCISE = Exercise(
    reference=format_reward,
    lesson="01_policies",
    section="A reward for the form",
    points=2,
    difficulty=2,
    minutes=10,
    cases=_format_cases,
    mistakes=(
        Mistake(
            "credit for tags that occur more than once",
            _tag_if(
                "text.find(tag, end) >= 0", "end = text.index(tag)", "end = text.find(tag, end)"
            ),
            "Each tag must occur exactly once: a model that is paid for repetition will repeat.",
        ),
        Mistake(
            "credit for every tag that occurs, however often and wherever",
            _tag_if("tag in text"),
            "Exactly once, and after the tags that earned before it: otherwise repetition and "
            "disorder are paid.",
        ),
        Mistake(
            "all or nothing, by one pattern for the whole text",
            _tenths("0.5 * bool(re.search(WHOLE, text, re.DOTALL))"),
            "Tenth by tenth: a model that does one part right should feel it.",
        ),
        Mistake(
            "whole numbers where nothing was earned",
            _tenths("earned / 10 if earned else 0"),
            "`torch.tensor([0])` is an integer tensor: start the sum at 0.0.",
        ),
        Mistake(
            "credit for tags in any order",
            _tag_if("text.count(tag) == 1"),
            "An answer before its reasoning is not what was asked: a tag counts only after the "
            "tags that earned before it.",
            telling=2,
        ),
        Mistake(
            "a number that must stand on the same line as its tags",
            _edit(", re.DOTALL", ""),
            "`.` does not match a line break unless `flags=re.DOTALL` says so.",
            telling=1,
        ),
        Mistake(
            "credit for the example that stands in the instructions",
            _edit(
                "earned, end =",
                'text = text[max(0, text.rfind("<think>")) :]\n        earned, end =',
            ),
            "A completion that repeats the template has each tag twice: that is not exactly "
            "once, and only its own text may be paid.",
        ),
        Mistake(
            "all or nothing",
            _tenths("(earned == 5) / 2"),
            "Tenth by tenth: a model that does one part right should feel it.",
        ),
        Mistake(
            "credit that ends with the first tag that is missing",
            _edit("+ len(tag)", "+ len(tag)\n            else:\n                break"),
            "A missing tag earns nothing itself, but the later ones still count.",
        ),
        Mistake(
            "credit for a number anywhere in the text",
            _number_if('re.search("[0-9]", text)'),
            "The number must stand between the answer tags.",
        ),
        Mistake(
            "credit for a number only if nothing else stands between the tags",
            _number_if("answer and answer.group(1).strip().isdigit()"),
            "“It is 14 apples.” contains a number; whether it is right is for the other reward "
            "to say.",
            telling=1,
        ),
        Mistake(
            "a number that counts only between tags that earned",
            _edit(
                "earned, end = 0, 0",
                "earned, end, tags = 0, 0, set()",
                "end = text.index(tag)",
                "tags.add(tag)\n                end = text.index(tag)",
                "if answer and",
                "if tags >= {*TAGS[2:]} and",
            ),
            "The last tenth looks at the first `<answer>` and the `</answer>` that follows it, "
            "whether or not these two have earned their own tenths.",
        ),
        Mistake(
            "a number in any answer, the first or a later one",
            _number_if('re.search("[0-9]", "".join(re.findall(ANSWER, text, re.DOTALL)))'),
            "Only the first `<answer>…</answer>` is read: one without a number is not mended by "
            "another one after it.",
            telling=1,
        ),
        Mistake(
            "a number in the last answer",
            _number_if('answer and re.search("[0-9]", re.findall(ANSWER, text, re.DOTALL)[-1])'),
            "The first `<answer>…</answer>` is read, not the last.",
            telling=2,
        ),
        Mistake(
            "a number between the first `<answer>` and the last `</answer>`",
            _edit("ANSWER", "ANSWER.replace('?', '')"),
            "`.*` takes as much as it can; `.*?` ends at the first `</answer>`.",
            telling=2,
        ),
        Mistake(
            "credit for the tags only",
            _number_if("False"),
            "The last tenth is for a number between the answer tags.",
        ),
        Mistake(
            "credit for an answer that holds no number",
            _number_if('"<answer>" in text and "</answer>" in text'),
            "A pair of tags with words between them has no answer that could be compared.",
        ),
        Mistake(
            "points in place of tenths",
            _tenths("float(earned)"),
            "0.1 each, 0.5 in all: the form must never be worth more than the right answer.",
        ),
        Mistake(
            "a reward for the number only",
            _tag_if("False"),
            "Each of the four tags earns a tenth as well.",
        ),
    ),
    alternatives=(_format_by_positions, _format_by_split, line_by_line),
    hints=(
        "Keep a position in the text. Each tag must occur once, and not before that position.",
        "`text.count(tag) == 1` and `text.index(tag) >= end`; after a tag that earned, move `end` "
        "behind it. For the number, one regular expression for what is between the first answer "
        "tags, with `flags=re.DOTALL`, and one for a digit in it.",
        "For one text:\n\n"
        "    earned, end = 0, 0\n"
        "    for tag in ('<think>', '</think>', '<answer>', '</answer>'):\n"
        "        if text.count(tag) == 1 and text.index(tag) >= end:\n"
        "            earned += 1\n"
        "            end = ...\n"
        "    inside = re.search(r'<answer>(.*?)</answer>', text, flags=re.DOTALL)\n"
        "    if inside and re.search(r'[0-9]', ...):\n"
        "        earned += 1",
    ),
)
