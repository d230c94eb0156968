"""Seeded word problems in GSM8K's format, and the sloppy demonstrations a model first learns from.

A *problem* is the truth: a question, and the steps that solve it with ``#### N`` on the last line.
A *demonstration* answers the same question the way a careless teacher would: it adds where it
should divide, stops early, forgets the ``####``. A model that imitates demonstrations inherits the
habits; reinforcement learning on the problems cures them.
"""

import hashlib
import operator
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from random import Random

from rlcourse.errors import UserError
from rlcourse.tasks.problem import Problem, Task, distinct
from rlcourse.tasks.templates import CONTAINERS, NAMES, TEMPLATES, THINGS, Template

OPERATIONS = {"+": operator.add, "-": operator.sub, "*": operator.mul, "/": operator.floordiv}
Step = tuple[str, str, str]  # ("a", "*", "b"), ("s1", "-", "c")


@dataclass(frozen=True)
class WordProblem(Problem):
    """A problem that remembers its template and its numbers, so that its steps can be redone."""

    template: str = ""
    numbers: tuple[int, ...] = ()


@dataclass(frozen=True)
class Level:
    """How hard: the share of one-, two- and three-step problems, and how large numbers get."""

    steps: tuple[float, float, float]
    few: tuple[int, int]
    some: tuple[int, int]
    many: tuple[int, int]
    limit: int  # no intermediate result is larger


LEVELS = {
    "easy": Level(steps=(0.5, 0.5, 0.0), few=(2, 5), some=(2, 12), many=(8, 30), limit=50),
    "default": Level(steps=(0.25, 0.45, 0.3), few=(2, 9), some=(2, 20), many=(10, 60), limit=99),
    "hard": Level(steps=(0.0, 0.0, 1.0), few=(2, 12), some=(10, 60), many=(30, 99), limit=199),
}


@dataclass(frozen=True)
class Slop:
    """How often a demonstration shows each bad habit (probabilities)."""

    add: float  # a step that should subtract, multiply or divide adds instead
    stop: float  # the solution ends before its last step
    format: float  # the last line reads "Answer: N" where it should read "#### N"
    slip: float  # a step's result is off by one


CLEAN = Slop(add=0.0, stop=0.0, format=0.0, slip=0.0)
BASE_SLOP = Slop(add=0.5, stop=0.15, format=0.1, slip=0.01)
SFT_SLOP = Slop(add=0.55, stop=0.2, format=0.15, slip=0.01)
TEACHERS = {"sloppy": SFT_SLOP, "clean": CLEAN}


def load(
    seed: int = 0,
    level: str = "default",
    train_size: int = 4000,
    evaluation_size: int = 256,
    teacher: str = "sloppy",
    demonstration_size: int = 2000,
) -> Task:
    """The embedded task.

    Args:
        seed: another seed draws other problems; no seed ever trains on what another evaluates.
        level: "easy", "default" or "hard".
        teacher: whose demonstrations supervised fine-tuning gets: "sloppy" (`SFT_SLOP`) or "clean".

    Raises:
        UserError: there is no such level or teacher.
    """
    if teacher not in TEACHERS:
        raise UserError(f"teacher={teacher!r} is unknown; choose {' or '.join(TEACHERS)}.")
    return Task(
        name="word_problems",
        train=problems(train_size, seed, level, "train"),
        evaluation=problems(evaluation_size, seed, level, "evaluation"),
        demonstrations=demonstrations(demonstration_size, seed, level, TEACHERS[teacher]),
    )


def problems(n: int, seed: int, level: str = "default", split: str = "train") -> list[WordProblem]:
    """`n` different problems of a split: "train" or "evaluation".

    Which of train and evaluation a problem belongs to is a property of its template and numbers
    alone, so no choice of seeds, sizes or names can make the two overlap.
    """
    return draw(n, seed, level, split, level)


@lru_cache(maxsize=16)  # every run of a lesson asks for the same ones
def draw(n: int, seed: int, level: str | Level, split: str, name: str) -> list[WordProblem]:
    """`problems` of any level; its name goes into the seed."""
    return distinct(n, stream(Random(f"{split}:{name}:{seed}"), level, split))


def demonstrations(
    n: int, seed: int, level: str = "default", slop: Slop = SFT_SLOP
) -> list[WordProblem]:
    """`n` training problems whose answers show the habits of `slop`."""
    rng = Random(f"demonstrations:{level}:{seed}:{slop}")
    return [
        WordProblem(p.question, sloppy_answer(p, slop, rng), p.template, p.numbers)
        for p in problems(n, seed, level, "train")
    ]


def sloppy_answer(problem: WordProblem, slop: Slop, rng: Random) -> str:
    """One careless solution of the problem; with `CLEAN`, the problem's own answer."""
    steps = steps_of(_BY_NAME[problem.template])
    if len(steps) > 1 and rng.random() < slop.stop:
        steps = steps[: rng.randrange(1, len(steps))]
    values = dict(zip("abcd", problem.numbers, strict=False))
    lines = []
    for left, op, right in steps:
        a, b = values[left], values[right]
        if rng.random() < slop.add or not is_whole(a, op, b):
            op = "+"
        result = OPERATIONS[op](a, b)
        if rng.random() < slop.slip:
            result += rng.choice((-1, 1)) if result else 1
        lines.append(f"{a} {op} {b} = {result}")
        values[f"s{len(lines)}"] = result
    last = "Answer:" if rng.random() < slop.format else "####"
    return "\n".join([*lines, f"{last} {result}"])


def is_held_out(template: str, numbers: Sequence[int]) -> bool:
    """True for one problem in eight: those that only evaluation sees."""
    key = f"{template}:{','.join(map(str, numbers))}"
    return hashlib.sha256(key.encode()).digest()[0] % 8 == 0


def stream(rng: Random, level: str | Level, split: str) -> Iterator[WordProblem]:
    """Problems of a split without end, repetitions included."""
    if isinstance(level, str) and level not in LEVELS:
        raise UserError(f"level={level!r} is unknown; choose {', '.join(LEVELS)}.")
    chosen = LEVELS[level] if isinstance(level, str) else level
    by_length = [[t for t in TEMPLATES if t.length == n] for n in (1, 2, 3)]
    while True:
        template = rng.choice(rng.choices(by_length, weights=chosen.steps)[0])
        numbers = _draw_numbers(template, chosen, rng)
        if is_held_out(template.name, numbers) == (split == "evaluation"):
            question = _tell(template, numbers, rng)
            blank = WordProblem(question, "", template.name, numbers)
            yield WordProblem(question, sloppy_answer(blank, CLEAN, rng), template.name, numbers)


def _draw_numbers(template: Template, level: Level, rng: Random) -> tuple[int, ...]:
    """Numbers for which every step has a whole result from 1 to the level's limit."""
    while True:
        numbers = tuple(rng.randint(*getattr(level, kind)) for kind in template.numbers.split())
        if worked(steps_of(template), numbers, level.limit):
            return numbers


def worked(steps: Sequence[Step], numbers: Sequence[int], limit: int) -> str | None:
    """The worked solution; None where a step leaves the whole numbers from 1 to the limit."""
    values, lines = dict(zip("abcd", numbers, strict=False)), []
    for i, (left, op, right) in enumerate(steps, start=1):
        a, b = values[left], values[right]
        result = OPERATIONS[op](a, b)
        if not is_whole(a, op, b) or not 1 <= result <= limit:
            return None
        lines.append(f"{a} {op} {b} = {result}")
        values[f"s{i}"] = result
    return "\n".join([*lines, f"#### {result}"])


def _tell(template: Template, numbers: tuple[int, ...], rng: Random) -> str:
    name, other = rng.sample(list(NAMES), 2)
    subject, pronoun = NAMES[name]
    return rng.choice(template.texts).format(
        **dict(zip("abcd", numbers, strict=False)),
        name=name, other=other, He=subject, he=pronoun,
        things=rng.choice(THINGS), boxes=rng.choice(CONTAINERS),
    )  # fmt: skip


def steps_of(template: Template) -> tuple[Step, ...]:
    """Its steps, such as (("a", "*", "b"), ("s1", "-", "c"))."""
    return tuple((a, op, b) for a, op, b in map(str.split, template.steps.split(";")))


def is_whole(a: int, op: str, b: int) -> bool:
    """Whether the step stays within the natural numbers."""
    if op == "/":
        return b > 0 and a % b == 0
    return op != "-" or a >= b


_BY_NAME = {t.name: t for t in TEMPLATES}
