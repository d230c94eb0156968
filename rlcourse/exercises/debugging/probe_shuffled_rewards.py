"""The same rewards, for the wrong completions."""

from collections.abc import Iterator

import torch

from rlcourse.algorithms.debugging import probe_shuffled_rewards
from rlcourse.checks.calling import Case
from rlcourse.checks.cases import CaseSampler
from rlcourse.checks.exercise import Exercise, Mistake
from rlcourse.checks.specs import Spec


def _cases(draw: CaseSampler) -> Iterator[Case]:
    seed = draw.integer(0, 10_000)

    def case(label, rewards, seed):
        generator = Spec("watched_generator", {"seed": seed})
        return Case(label, {"rewards": rewards, "generator": generator}, atol=0.2)

    n = 400 + 40 * draw.size(0, 2)
    halves = (torch.arange(n) < n // 2).double()
    for i in range(3):
        yield case(f"the first half was right, draw {i + 1}", halves, seed + i)
    groups = halves.reshape(-1, 8).flip(0).flatten()
    yield case("the last groups were right", groups, seed)
    ramp = 2 * torch.arange(n).double() / n
    yield case("no two alike", ramp, seed)
    yield case("no two alike, drawn again", ramp, seed + 1)
    yield case("all equal", torch.full((n,), 0.25).double(), seed)
    yield case("float32", halves.float(), seed)


def _seen(case: Case, rewards: torch.Tensor):
    """(rewards in order of size, the mean of the first half, how often neighbors are the same):
    which rewards there are, and whether where they stand still says anything."""
    rewards = rewards.double()
    in_order = (rewards[1:] >= rewards[:-1]).double().mean()
    return rewards.sort().values, rewards[: len(rewards) // 2].mean(), in_order


def _with_replacement(rewards, generator):
    return rewards[torch.randint(len(rewards), rewards.shape, generator=generator)]


def _rolled(rewards, generator):
    return rewards.roll(int(torch.randint(1, 20, (), generator=generator)))


def _noise(rewards, generator):
    return torch.rand(rewards.shape, generator=generator, dtype=rewards.dtype)


def _reversed(rewards, generator):
    torch.rand((), generator=generator)
    return rewards.flip(0)


def _by_sorting(rewards, generator):
    return rewards[torch.rand(len(rewards), generator=generator).argsort()]


def _by_swaps(rewards, generator):
    shuffled = rewards.clone()
    for i in range(len(rewards) - 1, 0, -1):
        j = int(torch.randint(i + 1, (), generator=generator))
        shuffled[i], shuffled[j] = shuffled[j].clone(), shuffled[i].clone()
    return shuffled


EXERCISE = Exercise(
    reference=probe_shuffled_rewards,
    lesson="10_debugging",
    section="Shuffled rewards",
    points=1,
    difficulty=1,
    minutes=5,
    cases=_cases,
    observe=_seen,
    mistakes=(
        Mistake(
            "rewards drawn with replacement",
            _with_replacement,
            "Some rewards then occur twice and others never, and the batch's mean moves with them: "
            "every reward must be dealt out once.",
        ),
        Mistake(
            "rewards in reverse order",
            _reversed,
            "A fixed order is none that chance has made: what stood first is now last, and a "
            "trainer could find it there.",
        ),
        Mistake(
            "rewards that keep their neighbors",
            _rolled,
            "Neighbors stay neighbors, and most of a group keeps the rewards of one group: deal "
            "them out one by one.",
        ),
        Mistake(
            "rewards in order of their size",
            lambda rewards, generator: rewards.sort().values,
            "An order that depends on the rewards is information, too: chance must decide.",
        ),
        Mistake(
            "fresh noise",
            _noise,
            "The rewards should be those that were earned, only not by these completions.",
        ),
        Mistake(
            "the rewards as they are",
            lambda rewards, generator: rewards.clone(),
            "Nothing is shuffled: `torch.randperm` makes an order.",
        ),
    ),
    alternatives=(_by_sorting, _by_swaps),
    hints=(
        "Which rewards there are must not change; whose they are must.",
        "A random order of the indices 0 … N − 1 makes a permutation of the rewards.",
        "`torch.randperm(len(rewards), generator=generator)` is such an order: index with it.",
    ),
)
