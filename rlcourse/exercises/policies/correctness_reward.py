"""Paying for the right number."""

import math
from collections.abc import Iterator

import torch

from rlcourse.checks.calling import Case
from rlcourse.checks.cases import CaseSampler
from rlcourse.checks.exercise import Exercise, Mistake
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


def _text_equal(completions, answers, extract=extract_answer):
    return torch.tensor(
        [float(c.strip() == a.strip()) for c, a in zip(completions, answers, strict=True)]
    )


def _compared(completions, answers, extract, same):
    pairs = zip(completions, answers, strict=True)
    return torch.tensor([float(same(extract(c), extract_answer(a))) for c, a in pairs])


def _last_line_equal(completions, answers, extract=extract_answer):
    def tail(text):
        return text.rpartition("####")[2].strip() if "####" in text else None

    extract = tail if extract is extract_answer else extract
    pairs = zip(completions, answers, strict=True)
    return torch.tensor([float(extract(c) is not None and extract(c) == tail(a)) for c, a in pairs])


def _contains(completions, answers, extract=extract_answer):
    pairs = zip(completions, answers, strict=True)
    return torch.tensor([float((extract_answer(a) or "?") in c) for c, a in pairs])


def _anywhere_in_reference(completions, answers, extract=extract_answer):
    pairs = [(extract(c), a.replace(",", "")) for c, a in zip(completions, answers, strict=True)]
    return torch.tensor([float(said is not None and said in text) for said, text in pairs])


def _anywhere_as_written(completions, answers, extract=extract_answer):
    pairs = [(extract(c), a) for c, a in zip(completions, answers, strict=True)]
    return torch.tensor([float(said is not None and said in text) for said, text in pairs])


def _within_number(completions, answers, extract=extract_answer):
    return _compared(
        completions, answers, extract, lambda a, b: a is not None and b is not None and a in b
    )


def _truthy(completions, answers, extract=extract_answer):
    def same(a, b):
        return bool(a and float(a)) and a == b

    return _compared(completions, answers, extract, same)


def _rounded(completions, answers, extract=extract_answer):
    def same(a, b):
        return a is not None and abs(float(a) - float(b)) < 0.5

    return _compared(completions, answers, extract, same)


def _within_one_percent(completions, answers, extract=extract_answer):
    def same(a, b):
        return a is not None and math.isclose(float(a), float(b), rel_tol=0.01)

    return _compared(completions, answers, extract, same)


def _within_a_hundredth(completions, answers, extract=extract_answer):
    def same(a, b):
        return a is not None and abs(float(a) - float(b)) < 0.01

    return _compared(completions, answers, extract, same)


def _none_is_right(completions, answers, extract=extract_answer):
    return _compared(completions, answers, extract, lambda a, b: a == b)


def _own_extract(completions, answers, extract=extract_answer):
    return correctness_reward(completions, answers)


def _extract_both(completions, answers, extract=extract_answer):
    pairs = zip(completions, answers, strict=True)
    return torch.tensor(
        [float(extract(c) is not None and extract(c) == extract(a)) for c, a in pairs]
    )


def _truncated(completions, answers, extract=extract_answer):
    return _compared(
        completions, answers, extract, lambda a, b: a is not None and int(float(a)) == int(float(b))
    )


def _tolerant(completions, answers, extract=extract_answer):
    return _compared(
        completions, answers, extract, lambda a, b: a is not None and abs(float(a) - float(b)) <= 1
    )


def _signless(completions, answers, extract=extract_answer):
    return _compared(
        completions, answers, extract, lambda a, b: a is not None and a.lstrip("-") == b.lstrip("-")
    )


def _averaged(completions, answers, extract=extract_answer):
    return correctness_reward(completions, answers, extract).mean()


def _punishes(completions, answers, extract=extract_answer):
    return 2 * correctness_reward(completions, answers, extract) - 1


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
            _text_equal,
            "There are hundreds of right ways to the same number: only the final numbers are "
            "compared.",
        ),
        Mistake(
            "equality of what is written after the mark, “14” against “14.0”",
            _last_line_equal,
            "Both sides go through an extraction that gives one number one spelling.",
        ),
        Mistake(
            "credit for a text in which the right number occurs anywhere",
            _contains,
            "On real solutions of GSM8K that pays for many wrong answers: only the declared one "
            "counts.",
        ),
        Mistake(
            "credit for a number that occurs anywhere in the reference",
            _anywhere_in_reference,
            "A reference shows its working, and its 18 is a step on the way to 14: both final "
            "numbers have to be read out and compared.",
            telling=2,
        ),
        Mistake(
            "credit for a number that the reference's text contains as it is written",
            _anywhere_as_written,
            "A reference shows its working, and its 18 is a step on the way to 14; and it may "
            "write 1,500 for 1500: read its final number out and compare that.",
        ),
        Mistake(
            "credit for a number that is part of the right one",
            _within_number,
            "`in` looks for a piece of a string, and “4” is a piece of “14”: compare with `==`.",
            telling=1,
        ),
        Mistake(
            "nothing for a right answer of 0",
            _truthy,
            "0 is a number like any other, and false in Python: ask whether there is an answer "
            "with `is not None`.",
            telling=1,
        ),
        Mistake(
            "credit for an answer that is off by less than a half",
            _rounded,
            "A verifiable reward has no “nearly”: the numbers are equal or they are not.",
            telling=2,
        ),
        Mistake(
            "credit for an answer that is off by up to one percent",
            _within_one_percent,
            "A verifiable reward has no “nearly”: 1000 is not 1001.",
            telling=2,
        ),
        Mistake(
            "credit for an answer that is off by less than a hundredth",
            _within_a_hundredth,
            "A verifiable reward has no “nearly”: 2.33 is not 2.333.",
            telling=1,
        ),
        Mistake(
            "credit where neither text has an answer",
            _none_is_right,
            "None equals None, but nothing was solved: a completion without a number earns 0.",
            telling=1,
        ),
        Mistake(
            "a reward that ignores `extract`",
            _own_extract,
            "Completions are read with the function that was handed in; the default is only its "
            "default.",
            telling=1,
        ),
        Mistake(
            "reference answers read with `extract`, too",
            _extract_both,
            "`extract` knows the completions' format; references are always in GSM8K's.",
            telling=1,
        ),
        Mistake(
            "equality of the whole parts",
            _truncated,
            "`int` cuts decimals off: 14.4 is not 14.",
            telling=2,
        ),
        Mistake(
            "credit for an answer that is off by up to 1",
            _tolerant,
            "A verifiable reward has no “nearly”: the numbers are equal or they are not.",
            telling=2,
        ),
        Mistake(
            "equality without the sign",
            _signless,
            "−3 and 3 are different answers.",
            telling=1,
        ),
        Mistake(
            "one mean for the whole batch",
            _averaged,
            "Every completion gets a reward of its own, (N,): the mean would tell nobody who "
            "was right.",
        ),
        Mistake(
            "−1 for a wrong answer",
            _punishes,
            "Wrong earns 0 here. What a shift of all rewards does to learning is lesson 03.",
        ),
        Mistake(
            "the completion's number against the whole reference text",
            lambda completions, answers, extract=extract_answer: torch.tensor(
                [float(extract(c) == a) for c, a in zip(completions, answers, strict=True)]
            ),
            "`answers` are worked solutions: their number has to be read out as well.",
        ),
        Mistake(
            "True and False in place of 1.0 and 0.0",
            lambda completions, answers, extract=extract_answer: (
                correctness_reward(completions, answers, extract) > 0
            ),
            "Rewards are float, as advantages and losses will be computed from them.",
        ),
        Mistake(
            "whole numbers in place of floats",
            lambda completions, answers, extract=extract_answer: correctness_reward(
                completions, answers, extract
            ).long(),
            "Rewards are float, as advantages and losses will be computed from them.",
        ),
        Mistake(
            "a list in place of a tensor",
            lambda completions, answers, extract=extract_answer: correctness_reward(
                completions, answers, extract
            ).tolist(),
            "Training computes with it: return `torch.tensor(rewards)`.",
        ),
    ),
    alternatives=(_correct_by_floats, _correct_by_lists),
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
