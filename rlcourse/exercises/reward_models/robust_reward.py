"""Break this reward, second half: a reward that resists."""

import re
from collections.abc import Iterator

import torch

from rlcourse.checks.calling import Case
from rlcourse.checks.cases import CaseSampler
from rlcourse.checks.exercise import Exercise, Mistake
from rlcourse.tasks.hacking import (
    calculations,
    flawed_reward,
    hacking_completions,
    robust_reward,
)
from rlcourse.tasks.rewards import correctness_reward, extract_answer

SOLVED = "3 * 6 = 18\n18 - 4 = 14\n#### 14"


def _robust_cases(draw: CaseSampler) -> Iterator[Case]:
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


EXERCISE = Exercise(
    reference=robust_reward,
    lesson="08_reward_models",
    section="A reward that resists",
    points=2,
    difficulty=3,
    minutes=15,
    cases=_robust_cases,
    mistakes=(
        Mistake(
            "the flawed reward",
            flawed_reward,
            "It pays for texts that solve nothing: every one of its parts has to be replaced.",
        ),
        Mistake(
            "plain correctness",
            correctness_reward,
            "The declared number is right, but was it worked out? A lucky guess, two numbers after "
            "the mark and false work are all paid.",
        ),
        Mistake(
            "a reward that takes an equals sign for work",
            _equals_sign,
            "“1 + 1 = 2” is no work on this problem, and “= 14” is none at all: read the "
            "calculations.",
        ),
        Mistake(
            "a reward that allows several marks",
            _robust(one_mark=False),
            "Who may declare twice may hedge: the mark must occur exactly once.",
            telling=1,
        ),
        Mistake(
            "a reward that allows anything after the number",
            _robust(alone=False),
            "“14 or 15” is two answers: nothing but the number may follow the mark.",
        ),
        Mistake(
            "a reward that pays without any calculation",
            _robust(work=False),
            "`all([])` is True: ask for at least one calculation.",
            telling=1,
        ),
        Mistake(
            "a reward that pays for false calculations",
            _robust(true=lambda steps: True),
            "Each calculation comes with whether it is true, and every one must be.",
            telling=2,
        ),
        Mistake(
            "a reward for which one true calculation is enough",
            _robust(true=any),
            "`all`, not `any`: one false step spoils the work.",
            telling=2,
        ),
        Mistake(
            "a reward that checks the last calculation only",
            _robust(true=lambda steps: all(steps[-1:])),
            "A false step before it is a false step.",
            telling=1,
        ),
        Mistake(
            "a reward whose calculations need not lead to the answer",
            _robust(result=None),
            "“1 + 1 = 2” is true and beside the point: the last result must be the number that is "
            "declared.",
            telling=1,
        ),
        Mistake(
            "a reward for which any calculation may give the answer",
            _robust(result="any"),
            "The *last* result is what the work arrives at.",
            telling=1,
        ),
        Mistake(
            "a reward for consistency, right or wrong",
            _robust(right=False),
            "Work that leads to the declared number is not enough: the number must be the "
            "reference's.",
        ),
        Mistake(
            "a reward that reads only the first line after the mark",
            _robust(first_line=True),
            "“14”, and on the next line “or 15”: that is how a model hedges. Nothing but the "
            "number may follow the mark, to the end of the text.",
            telling=1,
        ),
        Mistake(
            "a reward that takes nothing but digits for a number",
            _robust(form=r"\s*[0-9]+\s*"),
            "“$14”, “14.00”, “1,400” and “-3” are numbers, too: compare what `extract_answer` "
            "makes of them.",
        ),
        Mistake(
            "a reward that refuses a currency sign",
            _robust(form=r"[-−\s]*[0-9.,]+\s*"),
            "“$14” declares 14, and `extract_answer` reads it.",
            telling=1,
        ),
        Mistake(
            "a reward that refuses decimals",
            _robust(form=r"[-−$\s]*[0-9,]+\s*"),
            "“14.00” is 14: compare what `extract_answer` makes of it.",
            telling=1,
        ),
        Mistake(
            "a reward that refuses negative numbers",
            _robust(form=r"[$\s]*[0-9.,]+\s*"),
            "Somebody may owe 3: “-3” is a number.",
            telling=1,
        ),
        Mistake(
            "a reward that refuses commas",
            _robust(form=r"[-−$\s]*[0-9.]+\s*"),
            "“1,400” is 1400: compare what `extract_answer` makes of it.",
            telling=1,
        ),
        Mistake(
            "equality with the reference solution",
            _text_equal,
            "There are many honest ways to the same number.",
        ),
        Mistake(
            "half a reward for the right number alone",
            _half_for_the_answer,
            "Whatever is paid for a guess will be collected by guessing: 1 or 0.",
        ),
        Mistake(
            "−1 for what is not paid",
            _robust(pay=lambda paid: 1.0 if paid else -1.0),
            "A completion that fails earns 0.",
        ),
        Mistake(
            "True and False in place of 1.0 and 0.0",
            _robust(pay=bool),
            "Rewards are float, as advantages and losses will be computed from them.",
        ),
        Mistake(
            "a list in place of a tensor",
            lambda completions, answers: robust_reward(completions, answers).tolist(),
            "Training computes with it: return `torch.tensor(rewards)`.",
        ),
    ),
    alternatives=(_by_exits, _by_pattern),
    hints=(
        "Go through the docstring's conditions one by one, and write each as a line that is True "
        "or False.",
        '`text.partition("####")` gives what stands before and after the first mark; '
        "`calculations(work)` gives (is it true, result) for each calculation.",
        "Inside a loop over completions and answers:\n\n"
        '    work, _, declared = text.partition("####")\n'
        '    number = extract_answer("####" + declared)\n'
        '    only_a_number = re.fullmatch(r"[-$\\s]*[0-9.,]+\\s*", declared) is not None\n'
        "    steps = calculations(work)\n"
        "    rewards.append(float(only_a_number and ... and steps[-1][1] == number))",
    ),
)
