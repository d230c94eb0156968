"""What the noise of a gradient is."""

from collections.abc import Iterator

from torch import Tensor

from rlcourse.checks.declaring import Case, CaseSampler, tensor


def cases(draw: CaseSampler) -> Iterator[Case]:
    def case(label: str, gradients: Tensor) -> Case:
        return Case(label, {"gradients": gradients})

    yield case("worked: (1, 0) and (3, 4)", tensor([[1.0, 0.0], [3.0, 4.0]]))
    n, dims = draw.size(5, 7), draw.size(2, 4)
    yield case("more gradients than components", draw.normal(n, dims) + draw.normal(dims))
    yield case("more components than gradients", draw.normal(dims, n) + draw.normal(n))
    yield case("as many gradients as components", draw.normal(n, n) + draw.normal(n))
    yield case("two gradients", draw.normal(2, draw.size(3, 5)))
    yield case("one component", draw.normal(n, 1))
    yield case("equal gradients", draw.normal(1, dims).repeat(n, 1))
    yield case("components of different scale", draw.normal(n, 3) * tensor([0.01, 1.0, 100.0]))
    yield case("float32", draw.normal(n, dims).float())
    yield case("float32, far from 0", (3000 + draw.normal(8, 3)).float())


def _by_differences(gradients):
    n = len(gradients)
    pairs = gradients[:, None].double() - gradients[None].double()
    return (pairs.square().sum() / (2 * n * (n - 1))).to(gradients.dtype)


def _variance_by_loop(gradients):
    mean, total = gradients.sum(0) / len(gradients), gradients.new_zeros(())
    for gradient in gradients:
        total = total + (gradient - mean).square().sum()
    return total / (len(gradients) - 1)


def _from_squares(gradients):
    n = len(gradients)
    return ((gradients**2).mean(0) - gradients.mean(0) ** 2).sum() * n / (n - 1)


alternatives = (_by_differences, _variance_by_loop)
