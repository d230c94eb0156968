"""Paying for the form."""

import re
from collections.abc import Iterator

import torch

from rlcourse.checks.calling import Case
from rlcourse.checks.cases import CaseSampler
from rlcourse.checks.exercise import Exercise, Mistake
from rlcourse.tasks.rewards import format_reward

TAGS = ("<think>", "</think>", "<answer>", "</answer>")


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


def _paid(texts, tags=None, number=None):
    """Format rewards from a rule for the number of earned tags and one for the number."""
    tags = tags or (lambda text: round(10 * float(_tags_only(text))))
    number = number or _has_number
    return torch.tensor([(tags(text) + number(text)) / 10 for text in texts])


def _tags_only(text):
    return format_reward([text])[0] - 0.1 * _has_number(text)


def _has_number(text):
    inside = re.search(r"<answer>(.*?)</answer>", text, re.DOTALL)
    return int(bool(inside and re.search(r"[0-9]", inside.group(1))))


def _number_between_earning_tags(text):
    return _has_number(text) * (_earned(text) >= {"<answer>", "</answer>"})


def _earned(text):
    tags, end = set(), 0
    for tag in TAGS:
        if text.count(tag) == 1 and text.index(tag) >= end:
            tags.add(tag)
            end = text.index(tag) + len(tag)
    return tags


def _number_in_any(text):
    spans = re.findall(r"<answer>(.*?)</answer>", text, re.DOTALL)
    return int(any(re.search(r"[0-9]", span) for span in spans))


def _number_in_widest(text):
    inside = re.search(r"<answer>(.*)</answer>", text, re.DOTALL)
    return int(bool(inside and re.search(r"[0-9]", inside.group(1))))


def _number_in_last(text):
    spans = re.findall(r"<answer>(.*?)</answer>", text, re.DOTALL)
    return int(bool(spans and re.search(r"[0-9]", spans[-1])))


def _number_on_one_line(text):
    inside = re.search(r"<answer>(.*?)</answer>", text)
    return int(bool(inside and re.search(r"[0-9]", inside.group(1))))


def _number_alone(text):
    inside = re.search(r"<answer>(.*?)</answer>", text, re.DOTALL)
    return int(bool(inside and inside.group(1).strip().isdigit()))


def _unordered(text):
    return sum(text.count(tag) == 1 for tag in TAGS)


def _present(text):
    return sum(tag in text for tag in TAGS)


def _repeated(text):
    earned, end = 0, 0
    for tag in TAGS:
        place = text.find(tag, end)
        if place >= 0:
            earned, end = earned + 1, place + len(tag)
    return earned


def _until_one_is_missing(text):
    earned, end = 0, 0
    for tag in TAGS:
        if text.count(tag) != 1 or text.index(tag) < end:
            break
        earned, end = earned + 1, text.index(tag) + len(tag)
    return earned


def _whole_numbers(completions):
    rewards = [reward if reward else 0 for reward in format_reward(completions).tolist()]
    return torch.tensor(rewards)


def _one_pattern(completions):
    pattern = r"<think>.*</think>\s*<answer>.*\d.*</answer>"
    return torch.tensor([0.5 * bool(re.search(pattern, t, re.DOTALL)) for t in completions])


def _all_or_nothing(completions):
    return (format_reward(completions) > 0.45).float() / 2


def _last_attempt(completions):
    return format_reward([text[max(0, text.rfind("<think>")) :] for text in completions])


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
            lambda completions: _paid(completions, tags=_repeated),
            "Each tag must occur exactly once: a model that is paid for repetition will repeat.",
        ),
        Mistake(
            "credit for every tag that occurs, however often and wherever",
            lambda completions: _paid(
                completions, tags=lambda text: sum(tag in text for tag in TAGS)
            ),
            "Exactly once, and after the tags that earned before it: otherwise repetition and "
            "disorder are paid.",
        ),
        Mistake(
            "all or nothing, by one pattern for the whole text",
            _one_pattern,
            "Tenth by tenth: a model that does one part right should feel it.",
        ),
        Mistake(
            "whole numbers where nothing was earned",
            _whole_numbers,
            "`torch.tensor([0])` is an integer tensor: start the sum at 0.0.",
        ),
        Mistake(
            "credit for tags in any order",
            lambda completions: _paid(completions, tags=_unordered),
            "An answer before its reasoning is not what was asked: a tag counts only after the "
            "tags that earned before it.",
            telling=2,
        ),
        Mistake(
            "a number that must stand on the same line as its tags",
            lambda completions: _paid(completions, number=_number_on_one_line),
            "`.` does not match a line break unless `flags=re.DOTALL` says so.",
            telling=1,
        ),
        Mistake(
            "credit for the example that stands in the instructions",
            _last_attempt,
            "A completion that repeats the template has each tag twice: that is not exactly "
            "once, and only its own text may be paid.",
        ),
        Mistake(
            "all or nothing",
            _all_or_nothing,
            "Tenth by tenth: a model that does one part right should feel it.",
        ),
        Mistake(
            "credit that ends with the first tag that is missing",
            lambda completions: _paid(completions, tags=_until_one_is_missing),
            "A missing tag earns nothing itself, but the later ones still count.",
        ),
        Mistake(
            "credit for a number anywhere in the text",
            lambda completions: _paid(
                completions, number=lambda text: int(bool(re.search(r"[0-9]", text)))
            ),
            "The number must stand between the answer tags.",
        ),
        Mistake(
            "credit for a number only if nothing else stands between the tags",
            lambda completions: _paid(completions, number=_number_alone),
            "“It is 14 apples.” contains a number; whether it is right is for the other reward "
            "to say.",
            telling=1,
        ),
        Mistake(
            "a number that counts only between tags that earned",
            lambda completions: _paid(completions, number=_number_between_earning_tags),
            "The last tenth looks at the first `<answer>` and the `</answer>` that follows it, "
            "whether or not these two have earned their own tenths.",
        ),
        Mistake(
            "a number in any answer, the first or a later one",
            lambda completions: _paid(completions, number=_number_in_any),
            "Only the first `<answer>…</answer>` is read: one without a number is not mended by "
            "another one after it.",
            telling=1,
        ),
        Mistake(
            "a number in the last answer",
            lambda completions: _paid(completions, number=_number_in_last),
            "The first `<answer>…</answer>` is read, not the last.",
            telling=2,
        ),
        Mistake(
            "a number between the first `<answer>` and the last `</answer>`",
            lambda completions: _paid(completions, number=_number_in_widest),
            "`.*` takes as much as it can; `.*?` ends at the first `</answer>`.",
            telling=2,
        ),
        Mistake(
            "credit for the tags only",
            lambda completions: _paid(completions, number=lambda text: 0),
            "The last tenth is for a number between the answer tags.",
        ),
        Mistake(
            "credit for an answer that holds no number",
            lambda completions: _paid(
                completions, number=lambda text: int("<answer>" in text and "</answer>" in text)
            ),
            "A pair of tags with words between them has no answer that could be compared.",
        ),
        Mistake(
            "points in place of tenths",
            lambda completions: 10 * format_reward(completions),
            "0.1 each, 0.5 in all: the form must never be worth more than the right answer.",
        ),
        Mistake(
            "a reward for the number only",
            lambda completions: _paid(completions, tags=lambda text: 0),
            "Each of the four tags earns a tenth as well.",
        ),
    ),
    alternatives=(_format_by_positions, _format_by_split),
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
