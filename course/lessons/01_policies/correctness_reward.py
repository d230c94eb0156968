"""Paying for the right number."""

from collections.abc import Iterator
from math import isclose

import torch

from rlcourse.checks.declaring import Case, CaseSampler, Sketch, Spec
from rlcourse.tasks.rewards import extract_answer


def cases(draw: CaseSampler) -> Iterator[Case]:
    def case(label: str, *pairs: tuple[str, str], **options) -> Case:
        completions, answers = (list(side) for side in zip(*pairs, strict=True))
        return Case(label, {"completions": completions, "answers": answers, **options})

    n = draw.integer(12, 98)
    solved = "3 * 6 = 18\n18 - 4 = 14\n#### 14"
    yield case("worked: James, right and wrong", (solved, solved), ("3 + 6 = 9\n#### 9", solved))
    yield case("another way to the number", ("4 less than 18\n#### 14", solved))
    yield case("another spelling", ("#### 14.0", solved), ("#### $14", solved))
    yield case("thousands", ("#### 1500", "50 * 30 = 1,500\n#### 1,500"))
    yield case("right on the way, wrong at the end", ("18 - 4 = 14, minus 3\n#### 11", solved))
    yield case("right but not marked", ("18 - 4 = 14", solved))
    yield case("the digits of another number", (f"#### {n}4", f"#### {n}"))
    yield case("a number on the reference's way", ("#### 18", solved), ("#### 3", solved))
    yield case("a digit of the reference's number", ("#### 4", solved), ("#### 1", solved))
    yield case("a right answer of 0", ("14 - 14 = 0\n#### 0", "7 - 7 = 0\n#### 0"))
    yield case("nothing to compare", ("I do not know", "no answer here"))
    near = ("#### 1000", "#### 1001"), ("#### 1001", "#### 1000")
    yield case("close", (f"#### {n}.4", f"#### {n}"), (f"#### {n}", f"#### {n + 1}"), *near)
    yield case("rounded", (f"#### {n - 0.4}", f"#### {n}"), ("#### 2.333", "#### 2.33"))
    yield case("the other sign", (f"#### -{n}", f"#### {n}"))
    yield case("one of several", ("?", solved), ("#### 14", solved), ("#### 41", solved))
    last, bought = Spec("last_word"), "50 * 28 = 1,400\n#### 1,400"
    pairs = ("the answer is 1400", bought), ("#### 1400 no, it is 1500", bought)
    yield case("another way to read completions: the last word", *pairs, extract=last)


def line_by_line(completions, answers, extract=extract_answer):
    rewards = []
    for completion, answer in zip(completions, answers, strict=True):
        given, wanted = extract(completion), extract_answer(answer)
        right = given is not None and given == wanted
        rewards.append(float(right))
    return torch.tensor(rewards)


def marked(text):
    """What stands after the mark, as it is written."""
    return text.rpartition("####")[2].strip() if "####" in text else None


def _correct_by_floats(completions, answers, extract=extract_answer):
    rewards = torch.zeros(len(completions))
    for i, (completion, answer) in enumerate(zip(completions, answers, strict=True)):
        given, wanted = extract(completion), extract_answer(answer)
        if given is not None and wanted is not None:
            rewards[i] = float(float(given) == float(wanted))
    return rewards


sketch = Sketch(line_by_line, marked, isclose)
alternatives = (_correct_by_floats,)
