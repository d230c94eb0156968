"""Paying for the right number."""

from collections.abc import Iterator
from functools import partial
from math import isclose

import torch

from rlcourse.checks.calling import Case
from rlcourse.checks.cases import CaseSampler
from rlcourse.checks.exercise import Exercise, Mistake
from rlcourse.checks.sketch import Sketch
from rlcourse.checks.specs import Spec
from rlcourse.tasks.rewards import correctness_reward, extract_answer


def _correct_cases(draw: CaseSampler) -> Iterator[Case]:
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


_edit = Sketch(line_by_line, marked, isclose).alone
_right_if = partial(_edit, "given is not None and given == wanted")
_same = partial(_edit, "given == wanted")
_read = partial(_edit, "extract(completion), extract_answer(answer)")
_returned = partial(_edit, "torch.tensor(rewards)")


def _correct_by_floats(completions, answers, extract=extract_answer):
    rewards = torch.zeros(len(completions))
    for i, (completion, answer) in enumerate(zip(completions, answers, strict=True)):
        given, wanted = extract(completion), extract_answer(answer)
        if given is not None and wanted is not None:
            rewards[i] = float(float(given) == float(wanted))
    return rewards


def _correct_by_lists(completions, answers, extract=extract_answer):
    given = [extract(text) for text in completions]
    wanted = [extract_answer(text) for text in answers]
    right = [g == w and g is not None for g, w in zip(given, wanted, strict=True)]
    return torch.tensor(right, dtype=torch.float32)


EXERCISE = Exercise(
    reference=correctness_reward,
    lesson="01_policies",
    section="A reward is a program",
    points=2,
    difficulty=1,
    minutes=5,
    cases=_correct_cases,
    mistakes=(
        Mistake(
            "equality of the whole texts",
            _right_if("completion.strip() == answer.strip()"),
            "There are hundreds of right ways to the same number: only the final numbers are "
            "compared.",
        ),
        Mistake(
            "equality of what is written after the mark, “14” against “14.0”",
            _edit(
                "extract_answer(answer)",
                "marked(answer)",
                "given, wanted",
                "extract = marked if extract is extract_answer else extract\n        given, wanted",
            ),
            "Both sides go through an extraction that gives one number one spelling.",
        ),
        Mistake(
            "credit for a text in which the right number occurs anywhere",
            _right_if('(wanted or "?") in completion'),
            "On real solutions of GSM8K that pays for many wrong answers: only the declared one "
            "counts.",
        ),
        Mistake(
            "credit for a number that occurs anywhere in the reference",
            _same('given in answer.replace(",", "")'),
            "A reference shows its working, and its 18 is a step on the way to 14: both final "
            "numbers have to be read out and compared.",
            telling=2,
        ),
        Mistake(
            "credit for a number that the reference's text contains as it is written",
            _same("given in answer"),
            "A reference shows its working, and its 18 is a step on the way to 14; and it may "
            "write 1,500 for 1500: read its final number out and compare that.",
        ),
        Mistake(
            "credit for a number that is part of the right one",
            _same("wanted is not None and given in wanted"),
            "`in` looks for a piece of a string, and “4” is a piece of “14”: compare with `==`.",
            telling=1,
        ),
        Mistake(
            "nothing for a right answer of 0",
            _right_if("bool(given and float(given)) and given == wanted"),
            "0 is a number like any other, and false in Python: ask whether there is an answer "
            "with `is not None`.",
            telling=1,
        ),
        Mistake(
            "credit for an answer that is off by less than a half",
            _same("abs(float(given) - float(wanted)) < 0.5"),
            "A verifiable reward has no “nearly”: the numbers are equal or they are not.",
            telling=2,
        ),
        Mistake(
            "credit for an answer that is off by up to one percent",
            _same("isclose(float(given), float(wanted), rel_tol=0.01)"),
            "A verifiable reward has no “nearly”: 1000 is not 1001.",
            telling=2,
        ),
        Mistake(
            "credit for an answer that is off by less than a hundredth",
            _same("abs(float(given) - float(wanted)) < 0.01"),
            "A verifiable reward has no “nearly”: 2.33 is not 2.333.",
            telling=1,
        ),
        Mistake(
            "credit where neither text has an answer",
            _right_if("given == wanted"),
            "None equals None, but nothing was solved: a completion without a number earns 0.",
            telling=1,
        ),
        Mistake(
            "a reward that ignores `extract`",
            _read("extract_answer(completion), extract_answer(answer)"),
            "Completions are read with the function that was handed in; the default is only its "
            "default.",
            telling=1,
        ),
        Mistake(
            "reference answers read with `extract`, too",
            _read("extract(completion), extract(answer)"),
            "`extract` knows the completions' format; references are always in GSM8K's.",
            telling=1,
        ),
        Mistake(
            "equality of the whole parts",
            _same("int(float(given)) == int(float(wanted))"),
            "`int` cuts decimals off: 14.4 is not 14.",
            telling=2,
        ),
        Mistake(
            "credit for an answer that is off by up to 1",
            _same("abs(float(given) - float(wanted)) <= 1"),
            "A verifiable reward has no “nearly”: the numbers are equal or they are not.",
            telling=2,
        ),
        Mistake(
            "equality without the sign",
            _same('given.lstrip("-") == wanted.lstrip("-")'),
            "−3 and 3 are different answers.",
            telling=1,
        ),
        Mistake(
            "one mean for the whole batch",
            _returned("torch.tensor(rewards).mean()"),
            "Every completion gets a reward of its own, (N,): the mean would tell nobody who "
            "was right.",
        ),
        Mistake(
            "−1 for a wrong answer",
            _returned("2 * torch.tensor(rewards) - 1"),
            "Wrong earns 0 here. What a shift of all rewards does to learning is lesson 03.",
        ),
        Mistake(
            "the completion's number against the whole reference text",
            _right_if("given == answer"),
            "`answers` are worked solutions: their number has to be read out as well.",
        ),
        Mistake(
            "True and False in place of 1.0 and 0.0",
            _returned("torch.tensor(rewards) > 0"),
            "Rewards are float, as advantages and losses will be computed from them.",
        ),
        Mistake(
            "whole numbers in place of floats",
            _returned("torch.tensor(rewards).long()"),
            "Rewards are float, as advantages and losses will be computed from them.",
        ),
        Mistake(
            "a list in place of a tensor",
            _returned("rewards"),
            "Training computes with it: return `torch.tensor(rewards)`.",
        ),
    ),
    alternatives=(_correct_by_floats, _correct_by_lists, line_by_line),
    hints=(
        "Pair completions with answers (`zip`), decide for each pair, collect 0.0 or 1.0.",
        "The completion's number comes from `extract`, the answer's from `extract_answer`. "
        "Which pair of equal results must not be paid?",
        "A loop:\n\n"
        "    rewards = []\n"
        "    for completion, answer in zip(completions, answers, strict=True):\n"
        "        given = extract(completion)\n"
        "        rewards.append(float(given is not None and ...))\n"
        "    return torch.tensor(rewards)",
    ),
)
