"""Exercises in which students write a whole trainer, judged by the policy that it leaves behind.

There is no right answer to compare with. The trainer gets a policy, questions and a reward, trains
the policy in place, and its weights are measured on problems that it never saw. What keeps this
honest is where things are: the answers, the count of completions and the measurement are on the
judge's side, and all that the trainer can do is ask what a text is worth. Every text that it asks
about costs one completion of its budget.
"""

import hashlib
import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor

from rlcourse.checks.asking.calling import Failure, Outcome, one_thread
from rlcourse.checks.asking.case import Case
from rlcourse.checks.asking.specs import Spec
from rlcourse.checks.judging import testing
from rlcourse.checks.judging.case_sampler import CaseSampler
from rlcourse.policy.undecided import take_over

MAX_TOKENS = 32  # of an answer that is measured
SAMPLES = 4  # answers to each held-out question, at temperature 1
LONGEST = 2_000  # characters of a text that is worth anything
MOST_AT_ONCE = 4_096  # texts in one call
SPENT = "the budget of {} completions is spent"


@dataclass(frozen=True)
class World:
    """One variant of the task. ``floor`` is what can be earned on it without any training."""

    problems: dict[str, str]  # question → answer, to train on
    held_out: dict[str, str]
    floor: float


@dataclass(frozen=True)
class Contest:
    """What a trainer is tried on. Level k of `levels` earns the k-th share of the points."""

    world: Callable[[int], World]  # variant 0 is public, the others are drawn by the judge
    right: Callable[[str, str], bool]  # (completion, answer)
    policy: Callable[[], Any]  # a fresh start, as the Spec of this kind builds it
    start: str  # that kind
    completions: int
    seconds: float  # of a processor
    levels: tuple[tuple[float, float], ...]  # (accuracy, share), ascending

    def case(self, world: World, number: int, completions: int | None = None, seed=0) -> Case:
        """The call of the trainer, with a stand-in for the reward."""
        arguments = {
            "policy": Spec(self.start),
            "questions": list(world.problems),
            "reward": Spec(
                "stand_in",
                {"number": number, "name": "reward", "parameters": ["questions", "completions"]},
            ),
            "completions": self.completions if completions is None else completions,
            "seed": seed,
        }
        return Case("the trainer's budget", arguments)

    def cases(self, draw: CaseSampler) -> Iterator[Case]:
        """One call that can ask nothing: whether the trainer is written at all."""
        number = draw.integer(0, testing.LARGEST_NUMBER - 1)
        world = World({"How many?": "#### 1"}, {}, 0.0)
        testing.known_as(number, Rewards(world, self.right, 0))
        yield self.case(world, number, completions=0)


class Rewards:
    """The reward of one sitting, which counts what it is asked. It stays on the judge's side."""

    def __init__(self, world: World, right: Callable[[str, str], bool], completions: int):
        self._world, self._right, self.budget = world, right, completions
        self.asked: list[tuple[str, str, float]] = []  # question, completion, reward
        self.first = 0  # texts of the first call
        self.refused = False  # more was asked for than the budget allows

    def __call__(self, questions: list[str], completions: list[str]) -> Tensor:
        """1 for each right completion and 0 for every other one, (N,) float32."""
        pairs = self._verified(questions, completions)
        if len(self.asked) + len(pairs) > self.budget:
            self.refused = True
            raise RuntimeError(SPENT.format(self.budget))
        answers = [self._world.problems[question] for question, _ in pairs]
        found = [
            float(len(text) <= LONGEST and self._right(text, answer))
            for (_, text), answer in zip(pairs, answers, strict=True)
        ]
        self.asked += [(q, t[:LONGEST], r) for (q, t), r in zip(pairs, found, strict=True)]
        self.first = self.first or len(pairs)
        return torch.tensor(found)

    def _verified(self, questions: Any, completions: Any) -> list[tuple[str, str]]:
        both = questions, completions
        if not all(isinstance(x, list | tuple) and all(type(t) is str for t in x) for x in both):
            raise TypeError("reward takes two lists of texts: questions and completions")
        if len(questions) != len(completions) or len(questions) > MOST_AT_ONCE:
            raise ValueError(
                f"reward takes a question for every completion, at most {MOST_AT_ONCE} at once: "
                f"these are {len(questions)} questions and {len(completions)} completions"
            )
        for question in questions:
            if question not in self._world.problems:
                raise ValueError("reward knows only questions that train_policy was given")
        return list(zip(questions, completions, strict=True))


class Sitting:
    """Answers the calls of a reward's stand-in in a graded run, as ``testing.Answers`` does."""

    def __init__(self, rewards: Rewards, number: int):
        self.rewards, self._number = rewards, number

    def __call__(self, call: dict[str, Any], asked_before: int) -> dict[str, Any]:
        arguments = call.get("arguments")
        try:
            if call.get("call") != self._number or not isinstance(arguments, dict):
                raise TypeError("that is not a valid call")
            return {"value": self.rewards(**arguments), "graph": [False]}
        except Exception as error:
            return {"error": Failure(type(error).__name__, str(error)[:1000])}


@dataclass(frozen=True)
class Moved:
    """How much likelier the texts of the first call have become, in nats per text."""

    right: float
    wrong: float
    size: float  # the mean of the absolute changes

    def __str__(self) -> str:
        return f"by {self.right:+.2f} nats a text, and wrong ones by {self.wrong:+.2f}"


@dataclass(frozen=True)
class Measured:
    """What the judge found: a score for every held-out problem, of 4 samples and greedy."""

    sampled: tuple[int, ...] = ()  # right samples of each problem
    greedy: tuple[int, ...] = ()
    start: float = 0.0  # the sampled accuracy before training
    floor: float = 0.0
    completions: int = 0
    unread: float = 0.0  # share of greedy answers that the rule reads no number from
    world: str = ""  # by which those are told who were measured on the same one
    fault: str = ""  # why nothing could be measured
    moved: Moved | None = None
    rewards: tuple[float, ...] = field(default=())  # means of ten parts of the run

    @property
    def accuracy(self) -> float:
        return sum(self.sampled) / SAMPLES / max(1, len(self.sampled))

    @property
    def greedy_accuracy(self) -> float:
        return sum(self.greedy) / max(1, len(self.greedy))

    @property
    def interval(self) -> tuple[float, float]:
        """95 %, by the spread over problems."""
        n, mean = max(2, len(self.sampled)), self.accuracy
        variance = sum((s / SAMPLES - mean) ** 2 for s in self.sampled) / (n - 1)
        half = 1.96 * math.sqrt(variance / n)
        return max(0.0, mean - half), min(1.0, mean + half)

    def as_json(self) -> dict[str, Any]:
        return {
            "sampled": list(self.sampled),
            "greedy": list(self.greedy),
            "samples": SAMPLES,
            "start": self.start,
            "floor": self.floor,
            "completions": self.completions,
            "world": self.world,
        }


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


def weights_of(outcome: Outcome, start: dict[str, Tensor]) -> dict[str, Tensor] | str:
    """The weights that the trainer left, or what is wrong with them. Nothing is believed."""
    found = {
        name.removeprefix("policy."): value
        for name, value in outcome.after.items()
        if isinstance(value, Tensor)
    }
    if found.keys() != start.keys():
        return "The policy has other parameters than the one that it was given."
    for name, given in start.items():
        value = found[name]
        if value.shape != given.shape or value.dtype != given.dtype:
            return f"`{name}` has another shape or dtype than before."
        if not value.isfinite().all():
            return "Some weights are infinite or NaN."
    return found


@torch.no_grad()
@one_thread()
def measure(
    contest: Contest, world: World, outcome: Outcome, rewards: Rewards, seed: int
) -> Measured:
    """Evaluate the weights by the judge's own policy and sampler."""
    policy, before = contest.policy(), contest.policy()
    start = {name: p.detach().clone() for name, p in policy.named_parameters()}
    base = _answers(contest, before, world, seed)[0]
    facts = {
        "start": sum(base) / SAMPLES / len(base),
        "floor": world.floor,
        "world": hashlib.sha256("".join(world.held_out).encode()).hexdigest()[:12],
        "completions": len(rewards.asked),
        "rewards": _parts([reward for _, _, reward in rewards.asked]),
    }
    weights = weights_of(outcome, start)
    if isinstance(weights, str):
        return Measured(fault=weights, **facts)
    if all(torch.equal(weights[name], start[name]) for name in start):
        return Measured(fault="The weights are as they were: no step has changed them.", **facts)
    take_over(policy, weights)
    try:
        sampled, greedy, unread = _answers(contest, policy, world, seed)
        moved = compare_texts(before, policy, rewards)
    except (RuntimeError, ValueError):  # finite weights whose logits are not
        return Measured(fault="With these weights no token has a probability.", **facts)
    return Measured(sampled, greedy, unread=unread, moved=moved, **facts)


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


@torch.no_grad()
def compare_texts(before, after, rewards: Rewards) -> Moved | None:
    """What became of the first call's texts; None where all of them are right, or none is."""
    first = rewards.asked[: min(rewards.first, 256)]
    right = torch.tensor([bool(reward) for _, _, reward in first])
    if not first or right.all() or not right.any():
        return None
    prompts = [before.format_prompt(question) for question, _, _ in first]
    batch = before.demonstrations(prompts, [text for _, text, _ in first])
    change = (after.logprobs(batch) - before.logprobs(batch)).sum(1)
    found = change[right].mean(), change[~right].mean(), change.abs().mean()
    return Moved(*(value.item() for value in found))


def policy_of(contest: Contest, outcome: Outcome):
    """The policy that a trainer has left, if there is one; for a look at a single batch."""
    policy = contest.policy()
    weights = weights_of(outcome, dict(policy.named_parameters()))
    if isinstance(weights, str):
        return None
    take_over(policy, weights)
    return policy


def _parts(values: list[float], parts: int = 10) -> tuple[float, ...]:
    size = len(values) // parts
    if not size:
        return ()
    return tuple(sum(values[i * size : (i + 1) * size]) / size for i in range(parts))
