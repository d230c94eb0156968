"""Exercises in which students write a whole trainer, judged by the policy that it leaves behind.

There is no right answer to compare with. The trainer gets a ``Trainee``, trains it, and the policy
is measured on problems that it never saw. What keeps this honest is where things are: weights,
answers, counts and the measurement are on the judge's side, and all that a trainer can do is weigh
what the policy wrote. No text of its own is ever rewarded or imitated.
"""

import hashlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor

from rlcourse.checks.asking.calling import one_thread
from rlcourse.checks.asking.case import Case
from rlcourse.checks.asking.specs import Spec
from rlcourse.checks.judging import testing
from rlcourse.checks.judging.case_sampler import CaseSampler
from rlcourse.intervals import interval_of
from rlcourse.policy.trainee import MAX_TOKENS, Holder

SAMPLES = 4  # answers to each held-out question, at temperature 1


@dataclass(frozen=True)
class World:
    """One variant of the task. ``floor`` is the most that can be had on it without any training."""

    problems: dict[str, str]  # question → answer, to train on
    held_out: dict[str, str]
    floor: float


@dataclass(frozen=True)
class Contest:
    """What a trainer is tried on. Level k of `levels` earns the k-th share of the points."""

    world: Callable[[int], World]  # variant 0 is public, the others are drawn by the judge
    right: Callable[[str, str], bool]  # (completion, answer)
    policy: Callable[[], Any]  # a fresh start
    completions: int
    seconds: float  # of a processor
    levels: tuple[tuple[float, float], ...]  # (accuracy, share), ascending

    def holder(self, world: World, completions: int | None = None, seed: int = 0) -> Holder:
        """What holds the policy of one sitting; it stays on the judge's side."""

        def reward(questions: list[str], texts: list[str]) -> Tensor:
            pairs = zip(questions, texts, strict=True)
            return torch.tensor([float(self.right(t, world.problems[q])) for q, t in pairs])

        budget = self.completions if completions is None else completions
        return Holder(self.policy(), reward, budget, seed)

    def case(self, world: World, number: int, completions: int | None = None, seed=0) -> Case:
        """The call of the trainer."""
        arguments = {
            "policy": Spec("trainee", {"number": number}),
            "questions": list(world.problems),
            "completions": self.completions if completions is None else completions,
            "seed": seed,
        }
        return Case("the trainer's budget", arguments)

    def cases(self, draw: CaseSampler) -> Iterator[Case]:
        """One call that can ask nothing: whether the trainer is written at all."""
        world = World({"How many?": "#### 1"}, {}, 0.0)
        yield self.case(world, draw.integer(0, testing.LARGEST_NUMBER - 1), completions=0)


class Sitting(testing.Answers):
    """Answers the calls of a trainee in a graded run."""

    def __init__(self, holder: Holder, case: Case):
        super().__init__((case,))
        self.holder = holder

    @one_thread()
    def __call__(self, call: dict[str, Any], asked_before: int) -> dict[str, Any]:
        for number in self.numbers:
            testing.known_as(number, self.holder)
        return super().__call__(call, asked_before)


@dataclass(frozen=True)
class Measured:
    """What the judge found: a score for every held-out problem, of 4 samples and greedy."""

    sampled: tuple[int, ...] = ()  # right samples of each problem
    greedy: tuple[int, ...] = ()
    start: float = 0.0  # the sampled accuracy before training
    floor: float = 0.0
    completions: int = 0  # that were drawn, each with its reward
    questions: int = 0  # different ones among those
    steps: int = 0
    unread: float = 0.0  # share of greedy answers that the rule reads no number from
    world: str = ""  # by which those are told who were measured on the same one
    fault: str = ""  # why nothing could be measured
    rewards: tuple[float, ...] = field(default=())  # means of ten parts of the run

    @property
    def accuracy(self) -> float:
        return sum(self.sampled) / SAMPLES / max(1, len(self.sampled))

    @property
    def greedy_accuracy(self) -> float:
        return sum(self.greedy) / max(1, len(self.greedy))

    @property
    def interval(self) -> tuple[float, float]:
        """95 %, over problems."""
        return interval_of([right / SAMPLES for right in self.sampled])

    def as_json(self) -> dict[str, Any]:
        kept = ("start", "floor", "completions", "questions", "steps", "world")
        facts = {"sampled": list(self.sampled), "greedy": list(self.greedy), "samples": SAMPLES}
        return facts | {name: getattr(self, name) for name in kept}


def credit(contest: Contest, measured: Measured) -> float:
    """The share of the points: along straight lines between the levels, by the lower end."""
    low = measured.interval[0]
    before = (measured.floor, 0.0)
    for level in contest.levels:
        if low < level[0]:
            rise = (low - before[0]) / max(1e-9, level[0] - before[0])
            return max(0.0, before[1] + rise * (level[1] - before[1]))
        before = level
    return contest.levels[-1][1]


@torch.no_grad()
@one_thread()
def measure(contest: Contest, world: World, holder: Holder, seed: int) -> Measured:
    """Evaluate the policy that a trainer has left, and the one that it was given."""
    policy, before = holder.policy, contest.policy()
    base, surest, _ = _answers(contest, before, world, seed)
    facts = {
        "start": sum(base) / SAMPLES / len(base),
        "floor": max(world.floor, sum(surest) / len(surest)),
        "world": hashlib.sha256("".join(world.held_out).encode()).hexdigest()[:12],
        "completions": len(holder.asked),
        "questions": len(set(holder.asked)),
        "steps": holder.steps,
        "rewards": _parts(holder.rewards),
    }
    pairs = zip(policy.parameters(), before.parameters(), strict=True)
    if all(torch.equal(after, start) for after, start in pairs):
        return Measured(fault="The weights are as they were: no step has changed them.", **facts)
    try:
        sampled, greedy, unread = _answers(contest, policy, world, seed)
    except (RuntimeError, ValueError):  # finite weights whose logits are not
        return Measured(fault="With these weights no token has a probability.", **facts)
    return Measured(sampled, greedy, unread=unread, **facts)


def _answers(contest: Contest, policy, world: World, seed: int):
    prompts = [policy.format_prompt(question) for question in world.held_out]
    generator = torch.Generator().manual_seed(seed)
    drawn = policy.sample(prompts, SAMPLES, MAX_TOKENS, generator=generator)
    surest = policy.sample(prompts, 1, MAX_TOKENS, temperature=0.0)
    answers = list(world.held_out.values())
    texts, greedy = policy.decode(drawn), policy.decode(surest)
    sampled = tuple(
        sum(contest.right(text, answer) for text in texts[i * SAMPLES : (i + 1) * SAMPLES])
        for i, answer in enumerate(answers)
    )
    right = tuple(int(contest.right(t, a)) for t, a in zip(greedy, answers, strict=True))
    return sampled, right, sum("####" not in text for text in greedy) / len(greedy)


def _parts(values: list[float], parts: int = 10) -> tuple[float, ...]:
    size = len(values) // parts
    whole = range(parts if size else 0)
    return tuple(sum(values[i * size : (i + 1) * size]) / size for i in whole)
