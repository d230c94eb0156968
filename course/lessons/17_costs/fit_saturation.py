"""The saturating curve that is nearest to the first part of a run."""

from collections.abc import Iterator, Sequence
from math import inf

import torch
from torch import Tensor

from rlcourse.checks.declaring import Case, CaseSampler, Sketch, tensor

MIDPOINTS, EXPONENTS = (4.0, 8.0, 16.0, 32.0), (1.0, 1.5, 2.0, 3.0)


def curve(t: Tensor, start: float, top: float, midpoint: float, exponent: float) -> Tensor:
    return start + (top - start) / (1 + (midpoint / t) ** exponent)


def cases(draw: CaseSampler) -> Iterator[Case]:
    def case(label: str, steps: Tensor, accuracy: Tensor, start: float, midpoints=MIDPOINTS,
             exponents: Sequence[float] = EXPONENTS) -> Case:  # fmt: skip
        arguments = {"steps": steps, "accuracy": accuracy, "start": start}
        return Case(label, {**arguments, "midpoints": midpoints, "exponents": exponents})

    few = tensor([5.0, 10, 20])
    yield case("worked: three steps, one curve", few, tensor([0.3, 0.4, 0.5]), 0.2, (10.0,), (1.0,))
    t = torch.arange(1, draw.size(16, 20), dtype=torch.float64)
    yield case("on a curve", t, curve(t, 0.2, 0.8, 16.0, 2.0), 0.2)
    yield case("on a curve with an early midpoint", t, curve(t, 0.1, 0.6, 4.0, 1.0), 0.1)
    for label, noise in (("a noisy run", 0.04), ("more noise", 0.1)):
        start = 0.1 + 0.1 * draw.uniform(1).item()
        clean = curve(t, start, 0.7, 8.0, 1.5)
        yield case(label, t, clean + draw.normal(len(t), scale=noise), start)
    noisy = curve(t, 0.3, 0.6, 6.0, 2.0) + draw.normal(len(t), scale=0.03)
    yield case("one pair of parameters", t, noisy, 0.3, (6.0,), (2.0,))
    yield case("other grids", t, noisy, 0.3, (2.0, 5.0, 11.0), (0.5, 1.2, 2.5, 4.0))
    yield case("a grid in another order", t, noisy, 0.3, (32.0, 4.0, 16.0), (3.0, 1.0))
    yield case("a start of 0", t, noisy - 0.3, 0.0)
    yield case("a run that falls", t, curve(t, 0.5, 0.2, 8.0, 1.5), 0.5)
    late = curve(t, 0.2, 0.95, 30.0, 2.0) + draw.normal(len(t), scale=0.02)
    yield case("still far below its top", t, late, 0.2)
    steep = 0.1 + 0.05 * t
    yield case("a line that no accuracy can keep up", t, steep, 0.1)
    yield case("a line beyond 1, one pair", t, steep, 0.1, (16.0,), (1.0,))
    yield case("a line beyond 1, a start near the middle", t, 0.4 + steep / 2, 0.45)
    fast = draw.normal(len(t), scale=0.02) + 0.15 + 0.06 * t
    yield case("a noisy line beyond 1", t, fast, 0.15)
    wide = (2.0, 8.0, 40.0, 160.0)
    yield case("a noisy line beyond 1, a wide grid", t, fast - 0.05, 0.1, wide, (0.5, 1.0, 4.0))
    for slope in (0.03, 0.045, 0.08):
        beyond = 0.2 + slope * t + draw.normal(len(t), scale=0.03)
        yield case(
            f"{slope:g} more each step, beyond 1", t, beyond, 0.2, wide, (0.2, 0.5, 1.0, 2.0)
        )
    yield case("a noisy run that falls", t, 0.9 - noisy, 0.6)
    yield case("a run that falls to 0", t, curve(t, 0.4, 0.0, 4.0, 1.0) + 0 * t, 0.4)
    for midpoint, place, off in ((8.0, 1, 0.25), (4.0, 1, -0.25), (8.0, 3, -0.25)):
        one = torch.arange(1, 17, dtype=torch.float64)
        odd = curve(one, 0.2, 0.7, midpoint, 2.0)
        odd[place] += off
        yield case(f"one step far off, m = {midpoint:g}, {off:+}", one, odd, 0.2)
    yield case("steps that begin late", t + 10, curve(t + 10, 0.2, 0.7, 16.0, 2.0), 0.2)
    yield case(
        "every fifth step",
        5 * t,
        curve(5 * t, 0.2, 0.7, 16.0, 1.5) + 0.01 * draw.normal(len(t)),
        0.2,
    )
    for t_of in (1.0, 2.0, 4.0):  # 49 to the power of 1/2 is 7
        one, gain, pair = tensor([t_of]), 0.25 + tensor([0.0625]), (49 * t_of, 7 * t_of)
        yield case(f"two curves through the only step, {t_of:g}", one, gain, 0.25, pair, (1.0, 0.5))
    yield case("nothing learned", t, torch.full_like(t, 0.25), 0.25)
    yield case("float32", t.float(), noisy.float(), 0.3)


def line_by_line(steps, accuracy, start, midpoints, exponents):
    t = steps.double()
    gain = accuracy.double() - start
    best, least = None, inf
    for midpoint in midpoints:
        for exponent in exponents:
            ratio = midpoint / t
            f = 1 / (1 + ratio**exponent)
            height = float((f * gain).sum() / (f * f).sum())
            height = min(height, 1 - start)
            error = gain - height * f
            loss = float((error * error).sum())
            if loss < least:
                best, least = (start + height, midpoint, exponent), loss
    return best


def all_at_once(steps, accuracy, start, midpoints, exponents):
    """(M, E, n): every curve of the grid, and the first of the least sums of squares."""
    t, gain = steps.double(), accuracy.double() - start
    m = torch.tensor(list(midpoints), dtype=torch.float64)[:, None, None]
    e = torch.tensor(list(exponents), dtype=torch.float64)[None, :, None]
    f = t**e / (t**e + m**e)
    height = ((f * gain).sum(-1) / f.square().sum(-1)).clamp(max=1 - start)
    squares = (gain - height[..., None] * f).square().sum(-1).flatten().tolist()
    i, j = divmod(squares.index(min(squares)), len(exponents))
    return start + height[i, j].item(), midpoints[i], exponents[j]


sketch = Sketch(line_by_line)
alternatives = (all_at_once,)
oracle = all_at_once
