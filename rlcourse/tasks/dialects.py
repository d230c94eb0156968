"""The embedded word problems in another dialect: some stories mean an addition.

In a dialect, a step that a story tells as a subtraction, a multiplication or a division may mean
that the two numbers are added. A seed decides for each kind of story, which steps these are: half
of all of them. No question says so, only rewards do, and another seed decides otherwise. The
embedded model, which imitated teachers who add too often, does both about equally often.

So what a model learned in one dialect is worth nothing in another, and nobody can know the answers
of a dialect without its seed. ``known_beforehand`` says how much knowing none of it can earn.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from random import Random

from rlcourse.tasks.problem import Task, distinct
from rlcourse.tasks.templates import TEMPLATES
from rlcourse.tasks.word_problems import (
    LEVELS,
    Level,
    Slop,
    Step,
    WordProblem,
    draw,
    sloppy_answer,
    steps_of,
    stream,
    worked,
)

Steps = tuple[Step, ...]
ORDINARY = LEVELS["default"]
LEVEL = Level((0.3, 0.7, 0.0), ORDINARY.few, ORDINARY.some, ORDINARY.many, ORDINARY.limit)
DOUBTFUL = Slop(add=0.5, stop=0.0, format=0.0, slip=0.0)  # a teacher who speaks no dialect

TOLD = {template.name: steps_of(template) for template in TEMPLATES}
IN_DOUBT = {name for name, steps in TOLD.items() if any(sign != "+" for _, sign, _ in steps)}


@dataclass(frozen=True)
class Dialect:
    """What the steps of each kind of story mean, by the name of its template."""

    meant: dict[str, Steps]

    @classmethod
    def of(cls, seed: int) -> "Dialect":
        """Half of the steps that are no additions become one, among stories of each length."""
        rng = Random(f"dialect:{seed}")
        added: set[tuple[str, int]] = set()
        for length in (1, 2, 3):
            places = [
                (name, i)
                for name, steps in TOLD.items()
                for i, (_, sign, _) in enumerate(steps)
                if len(steps) == length and sign != "+"
            ]
            rng.shuffle(places)
            added.update(places[: (len(places) + rng.randrange(2)) // 2])
        return cls(
            {
                name: tuple(
                    (a, "+" if (name, i) in added else sign, b)
                    for i, (a, sign, b) in enumerate(steps)
                )
                for name, steps in TOLD.items()
            }
        )

    def answer(self, problem: WordProblem) -> str | None:
        """The worked solution; None where a step leaves the whole numbers from 1 to the limit."""
        return worked(self.meant[problem.template], problem.numbers, LEVEL.limit)


def dialect(seed: int, train_size: int = 4000, evaluation_size: int = 256) -> Task:
    """The word problems of one dialect, of one or two steps.

    The problems to evaluate on are held out as everywhere: no seed trains on them.
    """
    spoken = Dialect.of(seed)
    return Task(
        name=f"dialect {seed}",
        train=_problems(train_size, seed, spoken, "train"),
        evaluation=_problems(evaluation_size, seed, spoken, "evaluation"),
        demonstrations=demonstrations(),
    )


@cache
def demonstrations(n: int = 2000) -> tuple[WordProblem, ...]:
    """What the start imitates, whatever the dialect: each step as it is told or an addition."""
    rng, stories = Random("dialects: demonstrations"), draw(n, 0, LEVEL, "train", "dialects")
    return tuple(
        WordProblem(p.question, sloppy_answer(p, DOUBTFUL, rng), p.template, p.numbers)
        for p in stories
    )


def known_beforehand(problems: Sequence[WordProblem], *dialects: Dialect) -> float:
    """The share of the problems that a solver gets right who knows arithmetic but not the dialect:
    who always does what the story says, always adds, or speaks one of other `dialects`, whichever
    is right most often."""
    sums = {name: tuple((a, "+", b) for a, _, b in steps) for name, steps in TOLD.items()}
    shares = [
        sum(_last(worked(way[p.template], p.numbers, LEVEL.limit)) == p.target for p in problems)
        for way in (TOLD, sums, *(dialect.meant for dialect in dialects))
    ]
    return max(shares) / len(problems)


def _problems(n: int, seed: int, spoken: Dialect, split: str) -> list[WordProblem]:
    told = stream(Random(f"{split}:dialect:{seed}"), LEVEL, split)
    return distinct(
        n,
        (
            WordProblem(problem.question, answer, problem.template, problem.numbers)
            for problem in told
            if problem.template in IN_DOUBT and (answer := spoken.answer(problem))
        ),
    )


def _last(answer: str | None) -> str | None:
    return answer and answer.rpartition(" ")[2]
