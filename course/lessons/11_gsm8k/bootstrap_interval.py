"""How sure a mean is. Resampling is random, so intervals are compared within what chance allows.

The tolerance of a case is six standard errors of the difference between two honest bootstraps.
Scores of 0 and 1 have few possible means; the cases with them are chosen such that both quantiles
lie safely inside one of these, and every honest bootstrap finds the same two numbers.
"""

from collections.abc import Iterator
from statistics import NormalDist

import numpy as np
import torch
from torch import Tensor

from rlcourse.checks.declaring import Case, CaseSampler, Sketch, tensor

RESAMPLES = 4000


LONG_RUN = 60_000


def chance(correct: Tensor, level: float = 0.95, resamples: int = 2000, **_) -> float:
    """Six standard errors of the difference between two bootstrap quantiles."""
    tail = (1 - level) / 2
    density = NormalDist().pdf(NormalDist().inv_cdf(tail))
    error = (tail * (1 - tail) / resamples) ** 0.5 / density
    return 6 * 2**0.5 * error * standard_error(correct)


def observe(case: Case, ends: tuple[float, float]) -> dict[str, float | bool]:
    """Low and high; of a single resample only that they are the same number."""
    if case.arguments.get("resamples") == 1:
        return {"both ends alike": ends[0] == ends[1]}
    return {"the low end": ends[0], "the high end": ends[1]}


def cases(draw: CaseSampler) -> Iterator[Case]:
    def case(label: str, correct: Tensor, atol: float | None = None, **options) -> Case:
        arguments = {"correct": correct, **options, "seed": draw.integer(0, 10_000)}
        return Case(label, arguments, atol=chance(**arguments) if atol is None else atol)

    def coins(label: str, right: int, n: int, level: float) -> Case:
        where = torch.argsort(draw.uniform(n))
        correct = (where < right).double()
        return case(label, correct, atol=0.3 / n, level=level, resamples=RESAMPLES)

    worked = tensor([1.0, 0.0, 0.53, 0.94, 0.11, 0.27, 0.78, 0.06])
    yield Case("worked: eight problems", {"correct": worked}, atol=chance(worked))
    yield coins("2 of 16 right", 2, 16, 0.95)
    yield coins("14 of 16 right", 14, 16, 0.95)
    yield coins("1 of 30 right, level 0.9", 1, 30, 0.9)
    yield coins("3 of 10 right, level 0.8", 3, 10, 0.8)
    yield case("all right", torch.ones(draw.size(5, 9)).double(), atol=1e-9, resamples=100)
    many = {"resamples": RESAMPLES}
    yield case("shares of samples", draw.uniform(draw.size(18, 24)) ** 2, **many)
    yield case("level 0.5", draw.uniform(draw.size(18, 24)), level=0.5, **many)
    yield case("level 0.8", draw.uniform(draw.size(10, 14)) ** 2, level=0.8, **many)
    yield case("more problems", draw.uniform(draw.size(300, 320)), level=0.9, **many)
    yield case("float32", draw.uniform(draw.size(12, 16)).float(), level=0.8, **many)
    yield case("scores above 1 and below 0", 3 * draw.normal(12) + 1, level=0.9, **many)
    yield Case("no scores", {"correct": torch.zeros(0).double()}, raises=True)
    yield case("one resample", draw.uniform(draw.size(18, 24)), atol=1e-9, resamples=1)


def _number_of(correct: Tensor) -> int:
    if not len(correct):
        raise ValueError("no scores")
    return len(correct)


def _by_counts(correct, level=0.95, resamples=2000, seed=0):
    """How often each score is drawn, in place of the draws."""
    n = _number_of(correct)
    counts = np.random.default_rng(seed).multinomial(n, np.full(n, 1 / n), size=resamples)
    means = torch.from_numpy(counts).double() @ correct.double() / n
    tail = (1 - level) / 2
    return means.quantile(tail).item(), means.quantile(1 - tail).item()


def _long_run(correct, level=0.95, resamples=2000, seed=0):
    return _by_counts(correct, level, 1 if resamples == 1 else LONG_RUN, seed + 1)


def standard_error(correct: Tensor) -> float:
    return correct.double().std(correction=0).item() / len(correct) ** 0.5


def step_by_step(correct, level=0.95, resamples=2000, seed=0):
    n, scores = len(correct), correct.double()
    if n == 0:
        raise ValueError("no scores")
    generator = torch.Generator().manual_seed(seed)
    draws = torch.randint(n, (resamples, n), generator=generator)
    means = scores[draws].mean(dim=1)
    tails = torch.tensor([(1 - level) / 2, (1 + level) / 2], dtype=torch.float64)
    low, high = means.quantile(tails).tolist()
    return low, high


def around(center: Tensor, half: Tensor | float) -> tuple[float, float]:
    return (center - half).item(), (center + half).item()


def z(level: float) -> float:
    return NormalDist().inv_cdf((1 + level) / 2)


sketch = Sketch(step_by_step, around, z)
alternatives = (_by_counts,)
oracle = _long_run
