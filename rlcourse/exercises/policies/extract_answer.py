"""Reading the answer out of a text."""

import re
from collections.abc import Iterator

from rlcourse.checks.calling import Case
from rlcourse.checks.cases import CaseSampler
from rlcourse.checks.exercise import Exercise
from rlcourse.exercises.policies.extract_answer_mistakes import MISTAKES
from rlcourse.tasks.rewards import extract_answer


def _extract_cases(draw: CaseSampler) -> Iterator[Case]:
    a, b = draw.integer(11, 49), draw.integer(51, 99)
    texts = {
        "worked: James": "3 * 6 = 18\n18 - 4 = 14\n#### 14",
        "no mark": f"{a} + {b} = {a + b}",
        "a mark and nothing after it": f"{a} + {b} = {a + b}\n####",
        "a mark and words after it": f"{a} + {b} = {a + b}\n#### I do not know",
        "an empty text": "",
        "thousands": "50 * 30 = 1,500\n#### 1,500",
        "millions": f"#### {draw.integer(1, 9)},234,567",
        "dollars": f"{a} + {b}\n#### ${a}.00",
        "a negative number": f"{a} - {b}\n#### -{b - a}",
        "a fraction": "7 / 2 = 3.5\n#### 3.50",
        "a fraction below 1": "#### 0.25",
        "zero": f"{a} - {a} = 0\n#### 0",
        "a number that ends in zeros": f"#### {draw.integer(1, 9)}00",
        "a whole number after a fraction": "2.5 * 40 = 100.0\n#### 100",
        "a whole number before a fraction": "#### 100 bags of 2.5 kg",
        "two marks": f"#### {a}\nNo, wait.\n#### {b}",
        "a number after the first of two marks": f"#### {a}\nNo, wait.\n####",
        "a minus before the dollar sign": f"{a} - {b}\n#### -${b - a}",
        "a point after the zeros": f"#### ${draw.integer(3, 9)}.50.",
        "points after the mark": f"{a} + {b}\n#### ...",
        "words after the number": f"{a} + {b}\n#### {a + b} apples in 3 bags",
        "a point after the number": f"The total is\n#### {a + b}.",
        "a fraction without a whole part": f"#### .{a}",
        "words before the number": f"{a} + {b}\n#### maybe {a}, so {a + b}",
        "no space after the mark": f"####{a}",
        "three signs are no mark": f"### {a}",
        "a range": f"{a} + {b}\n#### {a}-{b}",
        "a line more": f"{b} - {a}\n#### {b - a}\n",
    }
    for label, text in texts.items():
        yield Case(label, {"text": text})


def _extract_by_float(text):
    """Through Python's own number types."""
    found = re.search(
        r"####\s*(-?)\$?([0-9][0-9,]*(?:\.[0-9]+)?|\.[0-9]+)",
        "####".join(["", text.split("####")[-1]]),
    )
    if "####" not in text or not found:
        return None
    value = float(found.group(1) + found.group(2).replace(",", ""))
    return str(int(value)) if value == int(value) else repr(value)


def _extract_by_characters(text):
    if "####" not in text:
        return None
    tail = text.split("####")[-1].strip().replace("$", "").replace(",", "")
    number = ""
    for character in tail:
        if not (character.isdigit() or character == "." or (character == "-" and not number)):
            break
        number += character
    if not any(c.isdigit() for c in number):
        return None
    number = ("0" if number.startswith(".") else "") + number.rstrip(".")
    return number.rstrip("0").rstrip(".") if "." in number else number


EXERCISE = Exercise(
    reference=extract_answer,
    lesson="01_policies",
    section="Reading the answer",
    points=3,
    difficulty=3,
    minutes=12,
    cases=_extract_cases,
    mistakes=MISTAKES,
    alternatives=(_extract_by_float, _extract_by_characters),
    hints=(
        "Two steps: cut the text at the last `####`; then read the number with which the rest "
        "begins, if it does.",
        "`text.rpartition('####')` returns (before, mark, tail), with an empty mark if there is "
        "none. For the number, a regular expression with an optional minus, an optional dollar "
        "sign, digits and commas, and perhaps a point and digits. Then remove commas and "
        "trailing zeros.",
        "Mind that only zeros *after a point* may go:\n\n"
        "    _, mark, tail = text.rpartition('####')\n"
        "    found = re.match(r'\\s*(-?)\\$?([0-9][0-9,]*)(\\.[0-9]+)?', tail) if mark else None\n"
        "    if found is None:\n"
        "        return None\n"
        "    sign, whole, fraction = found.group(1), found.group(2), found.group(3) or ''\n"
        "    ...",
    ),
)
