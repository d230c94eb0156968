"""Word problems of two to five steps in GSM8K's words, composed of parts, with small numbers.

They lie between `word_problems`, whose stories are templates, and GSM8K, whose numbers are large
and whose stories were written by people. A story has an opening, up to two events and an ending;
each part adds its sentences to the question and its steps to the solution. A *drill* asks for a few
sums and tells no story. The model in `course/stories/` was trained on both.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from random import Random

from rlcourse.tasks.problem import Problem, Task, distinct
from rlcourse.tasks.word_problems import OPERATIONS, is_held_out, is_whole

LIMIT = 50  # no result of a right step is larger
LENGTHS = {2: 0.5, 3: 0.3, 4: 0.15, 5: 0.05}  # steps, and how many of the stories take them

PEOPLE = {
    **dict.fromkeys(("James", "John", "Mark", "Tom", "Carlos", "Jason"), ("he", "his")),
    **dict.fromkeys(("Mary", "Anna", "Julia", "Natalia", "Betty", "Sarah"), ("she", "her")),
}
THINGS = (
    "apples", "books", "cards", "clips", "cookies", "eggs", "flowers", "marbles", "pencils",
    "stickers", "toys", "oranges",
)  # fmt: skip
BOXES = ("bag", "box", "pack", "basket")
PLURAL = {"bag": "bags", "box": "boxes", "pack": "packs", "basket": "baskets"}
DAYS = (("Monday", "Tuesday"), ("Saturday", "Sunday"), ("April", "May"))
TIMES = {2: "twice", 3: "three times", 4: "four times"}

few, some, many = (2, 6), (2, 12), (8, 30)  # ranges of numbers
Step = tuple[str, str, str, str]  # left, operation, right and the sentence around "{}"


@dataclass(frozen=True)
class Part:
    """A piece of a story: which numbers it draws, the steps that it adds, and its words.

    In the steps, `a` and `b` are the numbers, `t` is what there was before this part, and `x` the
    result of the part's first step. The last result is what there is after it.
    """

    name: str
    numbers: tuple[tuple[int, int], ...]
    steps: tuple[Step, ...]
    texts: tuple[str, ...]


HAS = "{He} has {} {things}."
LEFT = "{He} has {} {things} left."

OPENINGS = (
    Part("has", (many,), (), ("{name} has {a} {things}.", "{name} bought {a} {things}.")),
    Part("boxes", (few, few), (("a", "*", "b", HAS),),
         ("{name} buys {a} {boxes} of {things}. Each {box} has {b} {things}.",
          "{name} has {a} {boxes} with {b} {things} in each {box}.")),
    Part("daily", (few, few), (("a", "*", "b", "{He} gets {} {things}."),),
         ("{name} gets {a} {things} every day for {b} days.",
          "{name} makes {a} {things} per day for {b} days.")),
    Part("days", (many, some), (("a", "+", "b", HAS),),
         ("{name} got {a} {things} in {day} and {b} {things} in {after}.",
          "{name} has {a} red {things} and {b} blue {things}.")),
    Part("friend_more", (some, some),
         (("a", "+", "b", "{other} has {} {things}."), ("a", "+", "x", "Together there are {}.")),
         ("{name} has {a} {things}. {other} has {b} more {things} than {name}. "
          "They put their {things} together.",)),
    Part("friend_half", (many,),
         (("a", "/", "2", "{other} has {} {things}."), ("a", "+", "x", "Together there are {}.")),
         ("{name} has {a} {things}. {other} has half as many {things} as {name}. "
          "They put their {things} together.",)),
    Part("times", (some, (2, 4)),
         (("b", "*", "a", "In {after}, {he} got {} {things}."),
          ("a", "+", "x", "In all, {he} got {} {things}.")),
         ("{name} got {a} {things} in {day} and {times} as many {things} in {after}.",)),
)  # fmt: skip

EVENTS = (
    Part("gives", (some,), (("t", "-", "a", LEFT),),
         ("{He} gives {a} of them to {other}.", "{He} then sold {a} {things}.",
          "{He} lost {a} of the {things}.")),
    Part("finds", (some,), (("t", "+", "a", HAS),),
         ("Then {he} finds {a} more {things}.", "{His} friend gives {name} {a} more.")),
    Part("half", (), (("t", "/", "2", LEFT),),
         ("{He} gave half of them to {his} friend.", "Half of the {things} are broken.")),
    Part("each_friend", ((2, 5), (2, 6)),
         (("a", "*", "b", "{He} gives away {} {things}."), ("t", "-", "x", LEFT)),
         ("{He} gives {a} {things} to each of {his} {b} friends.",)),
    Part("uses", ((2, 5), (2, 7)),
         (("a", "*", "b", "{He} uses {} {things}."), ("t", "-", "x", LEFT)),
         ("{He} uses {a} {things} a day for {b} days.",)),
    Part("more_boxes", ((2, 5), (2, 9)),
         (("a", "*", "b", "{He} buys {} {things}."), ("t", "+", "x", HAS)),
         ("{He} buys {a} more {boxes} of {b} {things} each.",)),
)  # fmt: skip

ENDINGS = (
    Part("left", (), (),
         ("How many {things} are there now?", "How many {things} does {he} have in the end?")),
    Part("split", ((2, 9),), (("t", "/", "a", "Each gets {} {things}."),),
         ("{He} splits them equally among {a} {boxes}. How many {things} are in each {box}?",
          "If {a} friends share them equally, how many {things} does each friend get?")),
    Part("sells", ((2, 5),), (("t", "*", "a", "{He} earns ${} in total."),),
         ("{He} sells each of them for ${a}. How much money does {he} make?",
          "If each is worth ${a}, how much are they worth in total?")),
    Part("needs", (many,), (("a", "-", "t", "{He} needs {} more {things}."),),
         ("{He} needs {a} {things}. How many more {things} does {he} need?",)),
    Part("buys", ((2, 5), some),
         (("t", "*", "a", "{He} earns ${}."), ("x", "-", "b", "{He} has ${} left.")),
         ("{He} sells each for ${a} and spends ${b}. How much money does {he} have left?",)),
)  # fmt: skip


@dataclass(frozen=True)
class Story(Problem):
    """A problem that remembers its parts and their numbers, which say whether it is held out."""

    key: str = ""


def load(seed: int = 0, train_size: int = 4000, evaluation_size: int = 256) -> Task:
    """Problems to train on and others, with other numbers or other parts, to evaluate on."""
    return Task(
        "stories", problems(train_size, seed), problems(evaluation_size, seed, "evaluation")
    )


@lru_cache(maxsize=8)
def problems(n: int, seed: int, split: str = "train") -> list[Story]:
    """`n` different stories of a split. Which split a story is in hangs on the story alone."""
    return distinct(n, stream(Random(f"stories:{split}:{seed}"), split))


def stream(rng: Random, split: str = "train") -> Iterator[Story]:
    """Stories of a split without end, repetitions included."""
    while True:
        length = rng.choices(list(LENGTHS), weights=list(LENGTHS.values()))[0]
        story = None
        while story is None:
            story = _composed(rng, length)
        if is_held_out(story.key, ()) == (split == "evaluation"):
            yield story


def _composed(rng: Random, length: int) -> Story | None:
    """A story of random parts and numbers; None where it does not have `length` right steps."""
    parts = [
        rng.choice(OPENINGS), *rng.sample(EVENTS, rng.randint(0, 2)), rng.choice(ENDINGS)
    ]  # fmt: skip
    if sum(len(part.steps) for part in parts) != length:
        return None
    words = _words(rng)
    texts, lines, key = [], [], []
    total = 0
    for part in parts:
        drawn = [rng.randint(*limits) for limits in part.numbers]
        numbers = dict(zip("ab", drawn, strict=False))
        values = {"t": total, "2": 2, **numbers}
        text = rng.choice(part.texts)
        for left, operation, right, sentence in part.steps:
            a, b = values[left], values[right]
            if not is_whole(a, operation, b) or not 1 <= OPERATIONS[operation](a, b) <= LIMIT:
                return None
            values["x"] = total = result = OPERATIONS[operation](a, b)
            lines.append(_told(sentence, words).replace("{}", f"{a}{operation}{b}={total}"))
        if not part.steps and drawn:
            total = drawn[0]
        times = TIMES.get(drawn[-1], "") if drawn else ""
        texts.append(_told(text, words | numbers | {"times": times}))
        key += [part.name, *map(str, drawn)]
    for _ in range(1 + len(lines)):  # as often as when the problems of a seed were first drawn
        rng.random()
    return Story(" ".join(texts), "\n".join([*lines, f"#### {result}"]), ":".join(key))


def _words(rng: Random) -> dict:
    name, other = rng.sample(list(PEOPLE), 2)
    he, his = PEOPLE[name]
    box = rng.choice(BOXES)
    day, after = rng.choice(DAYS)
    return {
        "name": name, "other": other, "he": he, "He": he.title(), "his": his, "His": his.title(),
        "things": rng.choice(THINGS), "box": box, "boxes": PLURAL[box], "day": day, "after": after,
    }  # fmt: skip


def _told(text: str, words: dict) -> str:
    """The text with its words; a step's own place, "{}", stays."""
    for key, word in words.items():
        text = text.replace(f"{{{key}}}", str(word))
    return text
