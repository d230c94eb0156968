"""What the noise of a gradient is."""

from collections.abc import Iterator

import torch
from torch import Tensor

from rlcourse.algorithms.baselines import gradient_variance
from rlcourse.checks.calling import Case
from rlcourse.checks.cases import CaseSampler, tensor
from rlcourse.checks.exercise import Exercise, Mistake


def _variance_cases(draw: CaseSampler) -> Iterator[Case]:
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


EXERCISE = Exercise(
    reference=gradient_variance,
    lesson="03_baselines",
    section="How noisy is a gradient?",
    points=2,
    difficulty=1,
    minutes=5,
    cases=_variance_cases,
    mistakes=(
        Mistake(
            "the variance divided by n in place of n − 1",
            lambda gradients: gradients.var(0, correction=0).sum(),
            "The mean was fitted to the same n gradients, so the spread around it is a little too "
            "small: dividing by n − 1 makes up for it.",
        ),
        Mistake(
            "the mean of the variances in place of their sum",
            lambda gradients: gradients.var(0).mean(),
            "The trace of the covariance is the *sum* over components: the expected squared "
            "length of the error.",
        ),
        Mistake(
            "the mean squared length, without subtracting the mean gradient",
            lambda gradients: gradients.square().sum(1).mean(),
            "The mean gradient is signal, not noise: measure the distance from it.",
        ),
        Mistake(
            "the sum of squares over n − 1, without subtracting the mean gradient",
            lambda gradients: gradients.square().sum() / (len(gradients) - 1),
            "The mean gradient is signal, not noise: measure the distance from it.",
        ),
        Mistake(
            "squared distances from one number, the mean of all components",
            lambda gradients: (gradients - gradients.mean()).square().sum() / (len(gradients) - 1),
            "The mean gradient is a vector: each component has a mean of its own, `mean(dim=0)`.",
        ),
        Mistake(
            "the variance along the components of each gradient",
            lambda gradients: gradients.var(1, correction=min(1, gradients.shape[1] - 1)).sum(),
            "Noise is what differs from one batch to the next: the variance runs over the rows, "
            "dim=0.",
        ),
        Mistake(
            "the sum of standard deviations",
            lambda gradients: gradients.std(0).sum(),
            "Variances add up, standard deviations do not.",
        ),
        Mistake(
            "the square root of the variance",
            lambda gradients: gradients.var(0).sum().sqrt(),
            "The variance itself is wanted: squared length of the error.",
        ),
        Mistake(
            "the variance of all numbers in one heap",
            lambda gradients: gradients.var(),
            "Each component has a mean of its own to be measured from.",
        ),
        Mistake(
            "the variance of the gradients' lengths",
            lambda gradients: gradients.norm(dim=1).var(),
            "Two gradients of the same length can point in opposite directions, and that is the "
            "worst noise of all.",
        ),
        Mistake(
            "the sum of all entries of the covariance matrix",
            lambda gradients: gradients.sum(1).var(),
            "The trace sums the diagonal only: how components vary together is not asked.",
        ),
        Mistake(
            "the variance of the mean gradient, smaller by n",
            lambda gradients: gradients.var(0).sum() / len(gradients),
            "How noisy is *one* gradient? The mean of n of them would be n times less noisy.",
        ),
        Mistake(
            "the summed squares, not divided at all",
            lambda gradients: (gradients - gradients.mean(0)).square().sum(),
            "A variance is an average: divide by n − 1.",
        ),
        Mistake(
            "one variance a component, not yet summed",
            lambda gradients: gradients.var(0),
            "Sum over the components: one number says how noisy the gradient is.",
        ),
        Mistake(
            "the mean of squares minus the square of the mean, which cancels",
            _from_squares,
            "Equal on paper, but in float32 two large numbers are subtracted and little that is "
            "right remains: subtract the mean first, then square.",
            telling=1,
        ),
    ),
    alternatives=(
        _by_differences,
        _variance_by_loop,
        lambda gradients: torch.cov(gradients.T).reshape(gradients.shape[1], -1).trace(),
    ),
    hints=(
        "Each component of the gradient is a number with a variance of its own. The trace adds "
        "them up.",
        "The variance over the n rows, with n − 1 below, gives (D,); then the sum.",
        "torch has it:\n\n    return gradients.var(dim=..., correction=1)....",
    ),
)
