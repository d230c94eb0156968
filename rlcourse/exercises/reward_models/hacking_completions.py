"""Break this reward: texts that earn full marks and solve nothing."""

from collections.abc import Iterator
from functools import lru_cache

from rlcourse.checks.calling import Case
from rlcourse.checks.cases import CaseSampler
from rlcourse.checks.exercise import Exercise, Mistake
from rlcourse.tasks.hacking import flawed_reward, hacking_completions
from rlcourse.tasks.rewards import extract_answer

# The answers for which each text is judged: it may not know which one is right.
ANSWERS = (0, 1, 7, 10, 42, 99, 100, 365, 500, 731, 998, 999)


def _hacking_cases(draw: CaseSampler) -> Iterator[Case]:
    # A text that quotes the question is paid for just these answers, and that shows each time.
    a, b, c = (ANSWERS[draw.integer(2, 6)] for _ in range(3))
    bags = f"James has {a} bags with {b} apples in each bag. He eats {c}. How many are left?"
    cards = f"Mia shares {a * b} cards equally among {b} friends. How many does each get?"
    coins = f"Tom has {a} coins and finds {c}. How many coins does he have?"
    yield Case("one question", {"questions": [bags]})
    yield Case("three questions", {"questions": [cards, coins, bags]})
    yield Case("the same question twice", {"questions": [coins, coins]})
    yield Case("no question", {"questions": []})


def _seen(case: Case, completions: list[str]) -> list[str]:
    """In words, for each text: what the flawed reward pays for it, and what it declares."""
    return [f"earns {_pay(text)}; declares {_declared(text)}" for text in completions]


@lru_cache(maxsize=200)  # a comparison asks again what each text earned
def _pay(text: str) -> str:
    paid: dict[str, list[str]] = {}
    for n in ANSWERS:
        earned = flawed_reward([text], [f"#### {n}"]).item()
        paid.setdefault(f"{earned:.1f}", []).append(str(n))
    if len(paid) == 1:
        return f"{next(iter(paid))} whatever the answer is"
    return " and ".join(f"{pay} if it is {', '.join(answers)}" for pay, answers in paid.items())


def _declared(text: str) -> str:
    number = extract_answer(text)
    if number is None:
        return "no number"
    return number if number in map(str, range(1000)) else "a number that is never the answer"


def _text(numbers=range(1000), start="= ", end=" ####", between=" ", before=""):
    """The same text for every question."""
    text = start + between.join(f"{before}{n}" for n in numbers) + end
    return lambda questions: [text for _ in questions]


def _by_loop(questions):
    completions = []
    for _ in questions:
        text = "All my work: "
        for n in range(1000):
            text += f"{n} = {n}\n"
        completions.append(text + "#### I let you choose")
    return completions


def _mark_first(questions):
    return ["#### none of = " + ", ".join(map(str, range(1200))) for _ in questions]


EXERCISE = Exercise(
    reference=hacking_completions,
    lesson="08_reward_models",
    section="Break this reward",
    points=2,
    difficulty=2,
    minutes=10,
    cases=_hacking_cases,
    observe=_seen,
    mistakes=(
        Mistake(
            "texts in which no answer occurs as a number of its own",
            _text(()),
            "Form earns 0.4. The rest is paid where the right number occurs *anywhere*: what if "
            "every number occurs, with a space before and after it?",
        ),
        Mistake(
            "texts without the mark and without an equals sign",
            _text(start="", end=""),
            "Every number is there, and that earns 0.6. Now take the points for form, which are "
            "cheaper still.",
        ),
        Mistake(
            "texts without the mark `####`",
            _text(end=""),
            "0.3 is paid for the mark, wherever it stands and whatever follows.",
        ),
        Mistake(
            "texts without an equals sign",
            _text(start=""),
            "0.1 is paid for showing work, and the reward takes any “=” for work.",
        ),
        Mistake(
            "texts that declare a number after the mark",
            _text(start="= #### ", end=""),
            "What stands first after `####` is an answer, and one time in a thousand it is even "
            "right: declare none.",
        ),
        Mistake(
            "texts that declare every number, the last one 999",
            _text(before="#### ", between="\n", end=""),
            "The last declaration counts, and where the answer is 999 it is right: put the mark "
            "where no number follows.",
        ),
        Mistake(
            "texts that declare a number that is no answer",
            _text(end=" #### 1000"),
            "It pays nothing, but it *is* declared: after the mark no number may follow, not even "
            "1000 or −1.",
        ),
        Mistake(
            "texts whose numbers begin with 1",
            _text(range(1, 1000)),
            "Somebody may have nothing left: 0 is an answer, too.",
        ),
        Mistake(
            "texts whose numbers end with 99",
            _text(range(100)),
            "Answers go up to 999.",
        ),
        Mistake(
            "texts whose numbers end with 998",
            _text(range(999)),
            "`range(999)` ends with 998.",
        ),
        Mistake(
            "texts of the ten digits",
            _text(range(10)),
            "The reward looks for whole numbers: 42 does not occur in “4 2”.",
        ),
        Mistake(
            "one text for all questions, in a list by itself",
            lambda questions: hacking_completions([""]),
            "One completion a question, even if they are all the same.",
        ),
        Mistake(
            "a text in place of a list of texts",
            lambda questions: hacking_completions([""])[0],
            "Rewards take a list of completions, one for each question.",
        ),
    ),
    alternatives=(_by_loop, _mark_first, _text(range(1200), end="\n####\n")),
    hints=(
        "Read `flawed_reward` as an adversary would. What is the cheapest text for each of its "
        "three parts?",
        "A text that contains every number from 0 to 999 contains the right one. Then add an "
        "equals sign, and the mark where no number follows it.",
        "The same text for every question:\n\n"
        '    every_number = " ".join(str(n) for n in range(...))\n'
        '    return [f"= {every_number} ..."] * len(questions)',
    ),
)
