"""The same rewards, for the wrong completions."""

from collections.abc import Iterator

import torch

from rlcourse.checks.declaring import Case, CaseSampler, Spec


def cases(draw: CaseSampler) -> Iterator[Case]:
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


def _seen(case: Case, rewards: torch.Tensor) -> dict[str, torch.Tensor]:
    """Which rewards there are, and whether where they stand still says anything."""
    rewards = rewards.double()
    in_order = (rewards[1:] >= rewards[:-1]).double().mean()
    return {
        "the rewards in order of size": rewards.sort().values,
        "the mean of the first half": rewards[: len(rewards) // 2].mean(),
        "the share of rewards not below the one before": in_order,
    }


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


alternatives = (_by_sorting, _by_swaps)
observe = _seen
