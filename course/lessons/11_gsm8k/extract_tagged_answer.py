"""Reading the answer from between its tags."""

import re
from collections.abc import Iterator

from rlcourse.checks.declaring import Case, CaseSampler, Sketch
from rlcourse.tasks.rewards import extract_answer


def cases(draw: CaseSampler) -> Iterator[Case]:
    a, b = draw.integer(11, 49), draw.integer(51, 99)
    texts = {
        "worked: two crates": "<think>2 * 24 = 48</think>\n<answer>48</answer>",
        "thoughts over several lines": f"<think>\n{a} + {b}\n= {a + b}\n</think>\n"
        f"<answer>{a + b}</answer>",
        "tags on lines of their own": f"<think>\n{a}\n</think>\n<answer>\n{a + b}\n</answer>\n",
        "no thoughts": f"<answer>{a}</answer>",
        "no tags": f"{a} + {b} = {a + b}",
        "a number at the start and no tags": f"{a + b} is the sum",
        "no tags but a `####`": f"{a} + {b}\n#### {a + b}",
        "tags, and another number after `####`": f"<answer>{a}</answer>\n#### {b}",
        "`####` inside the tags": f"<answer>#### {a}</answer>",
        "an empty text": "",
        "nothing between the tags": f"<think>{a}</think><answer></answer>",
        "a word between the tags": f"<think>{a}</think><answer>unknown</answer>",
        "cut off before the end": f"<think>{a} + {b}</think>\n<answer>{a}",
        "an opening tag without its bracket": f"answer>{a}</answer>",
        "an end without a beginning": f"{a}</answer>",
        "two answers": f"<answer>{a}</answer> No, wait. <answer>{b}</answer>",
        "two answers, marked": f"<answer>#### {b}</answer> or <answer>#### {a}</answer>",
        "an answer among the thoughts": f"<think>Is it <answer>{b}</answer>?\nNo.</think>"
        f"\n<answer>{a}</answer>",
        "thoughts that mention the tag": f"<think>It goes after <answer> then. {a}</think>"
        f"\n<answer>{b}</answer>",
        "begun again": f"<answer>{a} no, <answer>{b}</answer>",
        "a second answer that is cut off": f"<answer>{a}</answer>\n<answer>{b}",
        "thousands": "<answer>1,500</answer>",
        "dollars": f"<answer> ${a}.00 </answer>",
        "a negative number": f"<think>{a} - {b}</think><answer>-{b - a}</answer>",
        "a fraction": f"<answer>{a}.50</answer>",
        "a unit and another number": f"<answer>{a} eggs in 3 boxes</answer>",
        "words before the number": f"<answer>The total is {a}</answer>",
        "a word in the last of two answers": f"<answer>{a}</answer> No: <answer>none</answer>",
        "words after the tags": f"<answer>{a}</answer> That took {b} minutes.",
    }
    for label, text in texts.items():
        yield Case(label, {"text": text})


PAIR = "<answer>((?:(?!<answer>).)*?)</answer>"


PLAIN = "<answer>(.*?)</answer>"


DIGITS = r"<answer>\s*([0-9]+)\s*</answer>"


NUMBER = r"-?\$?[0-9][0-9,]*(?:\.[0-9]+)?"


THOUGHTS = r"<think>.*?</think>\s*<answer>"


def in_two_steps(text):
    pairs = re.findall(PAIR, text, re.DOTALL)
    number = extract_answer("####" + pairs[-1]) if pairs else None
    return number


def numbers(texts: list[str]) -> list[str]:
    """Those with which the texts begin, where they do, in one spelling."""
    return [number for text in texts if (number := extract_answer("####" + text)) is not None]


def last(found: list[str]) -> str | None:
    return found[-1] if found else None


def _by_partition(text):
    before, end, _ = text.rpartition("</answer>")
    _, opening, inside = before.rpartition("<answer>")
    return extract_answer("#### " + inside) if end and opening else None


sketch = Sketch(in_two_steps, numbers, last)
alternatives = (_by_partition,)
