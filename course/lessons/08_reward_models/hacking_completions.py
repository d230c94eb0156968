"""Break this reward: texts that earn full marks and solve nothing."""

from collections.abc import Iterator
from functools import lru_cache

from rlcourse.checks.declaring import Case, CaseSampler
from rlcourse.tasks.hacking import flawed_reward
from rlcourse.tasks.rewards import extract_answer

# The answers for which each text is judged: it may not know which one is right.
ANSWERS = (0, 1, 7, 10, 42, 99, 100, 365, 500, 731, 998, 999)


def cases(draw: CaseSampler) -> Iterator[Case]:
    # A text that quotes the question is paid for just these answers, and that shows each time.
    a, b, c = (ANSWERS[draw.integer(2, 6)] for _ in range(3))
    bags = f"James has {a} bags with {b} apples in each bag. He eats {c}. How many are left?"
    cards = f"Mia shares {a * b} cards equally among {b} friends. How many does each get?"
    coins = f"Tom has {a} coins and finds {c}. How many coins does he have?"
    yield Case("one question", {"questions": [bags]})
    yield Case("three questions", {"questions": [cards, coins, bags]})
    yield Case("the same question twice", {"questions": [coins, coins]})
    yield Case("no question", {"questions": []})


def _seen(case: Case, completions: list[str]) -> dict[str, list[str]]:
    """In words, for each text: what the flawed reward pays for it, and what it declares."""
    words = [f"earns {_pay(text)}; declares {_declared(text)}" for text in completions]
    return {"what each text earns and declares": words}


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


alternatives = (_by_loop, _mark_first)
observe = _seen
