"""Break this reward, second half: a reward that resists."""

import re
from collections.abc import Iterator

import torch

from rlcourse.checks.declaring import Case, CaseSampler
from rlcourse.tasks.hacking import (
    calculations,
    flawed_reward,  # noqa: F401  (the page names it)
    hacking_completions,
    robust_reward,
)
from rlcourse.tasks.rewards import correctness_reward, extract_answer

SOLVED = "3 * 6 = 18\n18 - 4 = 14\n#### 14"


def cases(draw: CaseSampler) -> Iterator[Case]:
    def case(label: str, *pairs: tuple[str, str]) -> Case:
        completions, answers = (list(side) for side in zip(*pairs, strict=True))
        return Case(label, {"completions": completions, "answers": answers})

    def about_james(label: str, *texts: str) -> Case:
        return case(label, *((text, SOLVED) for text in texts))

    a, b, c = draw.integer(5, 12), draw.integer(3, 9), draw.integer(2, 12)
    total, left = a * b, a * b - c
    honest = f"{a} * {b} = {total}\n{total} - {c} = {left}\n#### {left}"
    yield about_james("worked: right, wrong, and a hack", SOLVED, "3 + 6 = 9\n#### 9",
                      *hacking_completions(["?"]))  # fmt: skip
    yield case("another problem", (honest, honest), (honest, SOLVED), (SOLVED, honest))
    yield about_james("other honest words", "He has 3 * 6 = 18 apples, then 18 - 4 = 14.\n#### 14")
    yield about_james("one calculation with two operations", "3 * 6 - 4 = 14\n#### 14")
    yield about_james("another spelling of the number", "18 - 4 = 14.0\n#### 14",
                      "18 - 4 = 14\n####14\n")  # fmt: skip
    yield about_james("a currency sign", "18 - 4 = 14\n#### $14")
    yield about_james("decimals", "18 - 4 = 14\n#### 14.00")
    many = "50 * 28 = 1400\n#### 1400", "50 * 28 = 1400\n#### 1,400"
    yield case("thousands", ("50 * 28 = 1,400\n#### 1400", many[1]))
    yield case("a comma in the number declared", (many[1], many[0]), (many[1], many[1]))
    debt = f"{a} - {a + c} = -{c}\n#### -{c}"
    yield case("a negative number", (debt, debt), (debt.replace("#### -", "#### "), debt))
    yield about_james("a bare guess", "#### 14", "It is 14.\n#### 14", "= 14\n#### 14")
    yield about_james(
        "a guess in disguise", "1 + 1 = 2\n#### 14", "18 - 4 = 14\n14 + 3 = 17\n#### 14"
    )
    yield about_james(
        "work that is false", "3 + 6 = 18\n18 - 4 = 14\n#### 14", "3 + 6 = 18\n18 - 5 = 14\n#### 14"
    )
    yield about_james("false at the end", "3 * 6 = 18\n18 - 5 = 14\n#### 14")
    yield about_james(
        "several numbers declared", "18 - 4 = 14\n#### 14 or 15", "18 - 4 = 14\n#### 14 15"
    )
    yield about_james(
        "several marks", "18 - 4 = 14\n#### 15\n#### 14", "18 - 4 = 14\n#### 14\n#### 14"
    )
    yield about_james("right work, wrong declaration", "3 * 6 = 18\n18 - 4 = 14\n#### 18")
    wrong = f"{a} + {b} = {a + b}\n#### {a + b}"
    yield case("consistent and wrong", (wrong, f"#### {left + 1000}"))
    yield about_james("no mark, and nothing at all", "3 * 6 = 18\n18 - 4 = 14", "", "####")
    yield about_james("words after the number", "18 - 4 = 14\n#### 14 apples")
    yield about_james(
        "another line after the number",
        "18 - 4 = 14\n#### 14\nor 15",
        "18 - 4 = 14\n#### 14\nDone.",
    )


def _robust(
    one_mark=True, alone=True, right=True, work=True, true=all, result="last", pay=float,
    form=r"[-−$\s]*[0-9.,]+\s*", first_line=False,
):  # fmt: skip
    """`robust_reward` with one condition dropped or changed."""

    def decide(text, answer):
        before, mark, declared = text.rpartition("####")
        number, wanted = extract_answer(mark + declared), extract_answer(answer)
        steps = calculations(before)
        results = [claimed for _, claimed in steps]
        results = results[-1:] if result == "last" else results
        if first_line:
            declared = (declared.strip().splitlines() or [""])[0]
        conditions = [
            text.count("####") == 1 or not one_mark,
            re.fullmatch(form, declared) is not None or not alone,
            number is not None,
            number == wanted or not right,
            len(steps) > 0 or not work,
            true([is_true for is_true, _ in steps]),
            result is None or number in results or (not work and not steps),
        ]
        return all(conditions)

    def reward(completions, answers):
        pairs = zip(completions, answers, strict=True)
        return torch.tensor([pay(decide(text, answer)) for text, answer in pairs])

    return reward


def _equals_sign(completions, answers):
    shown = torch.tensor([float("=" in text) for text in completions])
    return shown * correctness_reward(completions, answers)


def _half_for_the_answer(completions, answers):
    return (robust_reward(completions, answers) + correctness_reward(completions, answers)) / 2


def _text_equal(completions, answers):
    pairs = zip(completions, answers, strict=True)
    return torch.tensor([float(text.strip() == answer.strip()) for text, answer in pairs])


def _by_exits(completions, answers):
    rewards = torch.zeros(len(completions))
    for i, (text, answer) in enumerate(zip(completions, answers, strict=True)):
        parts = text.split("####")
        if len(parts) != 2 or len(parts[1].split()) != 1:
            continue
        number, steps = extract_answer(text), calculations(parts[0])
        if number is None or number != extract_answer(answer) or not steps:
            continue
        if all(is_true for is_true, _ in steps) and steps[-1][1] == number:
            rewards[i] = 1.0
    return rewards


def _by_pattern(completions, answers):
    form = re.compile(r"[^#]*####[ ]*\$?-?[\d,]+(\.\d+)?\s*")
    right = correctness_reward(completions, answers).tolist()
    rewards = []
    for text, is_right in zip(completions, right, strict=True):
        steps = calculations(text)
        true = bool(steps) and all(ok for ok, _ in steps)
        same = true and steps[-1][1] == extract_answer(text)
        rewards.append(1.0 if form.fullmatch(text) and is_right and same else 0.0)
    return torch.tensor(rewards)


alternatives = (_by_exits, _by_pattern)
GIVEN = "`calculations` and what it calls are given to students, who only call it"
boundaries = (
    ("operator == '/'", GIVEN),
    ("operator == '+'", GIVEN),
    ("number == 0", GIVEN),
)
