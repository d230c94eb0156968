"""How much of the returns' variance a critic explains."""

from collections.abc import Iterator

import torch

from rlcourse.checks.declaring import Case, CaseSampler, Sketch, tensor


def cases(draw: CaseSampler) -> Iterator[Case]:
    def case(label, values, returns) -> Case:
        return Case(label, {"values": values, "returns": returns})

    yield case("worked: half of it explained", tensor([0.0, 0, 1, 1]), tensor([0.0, 1, 1, 2]))
    n = draw.size(5, 8)
    returns = draw.rewards(n)
    yield case("a critic that is nearly right", returns + 0.1 * draw.rewards(n), returns)
    yield case("a critic that is off by a constant", returns + 3, returns)
    yield case("a critic on another scale", 0.5 * returns, returns)
    yield case("a critic with the wrong sign", -returns, returns)
    yield case("a critic that is three times too loud", 3 * returns, returns)
    yield case("a critic that knows nothing", 4 * draw.rewards(n), draw.rewards(n))
    yield case("a constant critic", tensor([2.0] * n), returns)
    yield case("all returns are equal", draw.rewards(n), tensor([1.0] * n))
    yield case("all returns are equal, and all values", tensor([2.0] * n), tensor([1.0] * n))
    yield case("float32", draw.rewards(n).float(), draw.rewards(n).float())


def by_covariance(values, returns):
    """Var(G − V) = Var(G) + Var(V) − 2 Cov(G, V)."""
    centered, spread = returns - returns.mean(), values - values.mean()
    total = centered.square().sum()
    if total == 0:
        return total
    return (2 * (centered * spread).sum() - spread.square().sum()) / total


def squared_correlation(values, returns):
    centered, spread = returns - returns.mean(), values - values.mean()
    scale = centered.square().sum() * spread.square().sum()
    return (centered * spread).sum().square() / scale if scale > 0 else torch.zeros_like(scale)


def line_by_line(values, returns):
    errors = returns - values
    unexplained = errors.var(correction=0)
    total = returns.var(correction=0)
    share = 1 - unexplained / total
    return torch.where(total > 0, share, torch.zeros_like(total))


sketch = Sketch(line_by_line)
alternatives = (by_covariance,)
