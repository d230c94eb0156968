"""Mean 0 and variance 1 over real tokens."""

from collections.abc import Iterator

import torch
from torch import Tensor

from rlcourse.algorithms.policies import masked_mean
from rlcourse.checks.declaring import Case, CaseSampler, Sketch, tensor

# Up to 1e-5, beside the deviation or under the root, is as good as the reference's 1e-8.
ANY_EPSILON = 2e-3


def cases(draw: CaseSampler) -> Iterator[Case]:
    def case(label: str, mask: Tensor, dtype=torch.float64, x=None) -> Case:
        x = 3 + draw.normal(*mask.shape, scale=2.0) if x is None else x
        return Case(label, {"x": x.to(dtype), "mask": mask}, atol=ANY_EPSILON)

    worked = tensor([[1.0, 3.0], [5.0, 100.0]])
    yield case("worked: three tokens and padding", torch.tensor([[1, 1], [1, 0]]) > 0, x=worked)
    for label, logprobs, mask in draw.batches():
        yield case(label, mask, dtype=logprobs.dtype)
    mask = draw.mask(draw.size(3, 4), draw.size(5, 6))
    tenths = torch.full((1, 7), 0.1)
    yield case("seven times 0.1, float32", tenths > 0, x=tenths, dtype=torch.float32)
    far = 3000 + draw.normal(*mask.shape, scale=3.0)
    yield case("far from 0, float32", mask, x=far, dtype=torch.float32)
    alike = {"x": torch.full(mask.shape, 2.0).double(), "mask": mask}
    yield Case("all alike", alike, atol=ANY_EPSILON)
    yield case("small", mask, x=0.1 * draw.normal(*mask.shape))
    yield case("around 0", mask, x=draw.normal(*mask.shape))
    yield case("large", mask, x=300 * draw.normal(*mask.shape) - 500)
    rows = 5 * draw.normal(len(mask), 1) + draw.normal(*mask.shape)
    yield case("rows far from one another", mask, x=rows)


def _to_unit_range(x, mask):
    real = x[mask.bool()]
    if not len(real):
        return torch.zeros_like(x)
    width = (real.max() - real.min()).clamp(min=1e-8)
    return ((x - real.min()) / width).masked_fill(~mask.bool(), 0)


def _in_place(x, mask):
    x -= masked_mean(x, mask)
    variance = masked_mean(x.square(), mask)
    return (x * (variance + 1e-8).rsqrt()).masked_fill(~mask.bool(), 0)


def _by_selection(x, mask):
    real, out = x[mask.bool()], torch.zeros_like(x)
    if len(real):
        out[mask.bool()] = (real - real.mean()) / (real.var(correction=0) + 1e-8).sqrt()
    return out


def _by_loop(x, mask):
    kept = [float(v) for v, m in zip(x.flatten(), mask.flatten(), strict=True) if m]
    n = max(len(kept), 1)
    mean = sum(kept) / n
    std = (sum((v - mean) ** 2 for v in kept) / n + 1e-8) ** 0.5
    return torch.where(mask.bool(), (x - mean) / std, torch.zeros_like(x))


def line_by_line(x, mask):
    mean = masked_mean(x, mask)
    centered = x - mean
    variance = masked_mean(centered.square(), mask)
    result = centered / (variance + 1e-8).sqrt()
    return result.masked_fill(~mask.bool(), 0)


sketch = Sketch(line_by_line)
alternatives = (_by_selection, _by_loop)
