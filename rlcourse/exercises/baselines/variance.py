"""What the noise of a gradient is, and which constant baseline makes it least."""

from collections.abc import Iterator

import torch
from torch import Tensor

from rlcourse.algorithms.baselines import gradient_variance, optimal_baseline
from rlcourse.exercises.calling import Case
from rlcourse.exercises.cases import Draw, tensor
from rlcourse.exercises.exercise import Exercise, Mistake

# gradient_variance


def _variance_cases(draw: Draw) -> Iterator[Case]:
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


GRADIENT_VARIANCE = Exercise(
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


# optimal_baseline


def _optimal_cases(draw: Draw) -> Iterator[Case]:
    def case(label: str, rewards: Tensor, norms: Tensor) -> Case:
        return Case(label, {"rewards": rewards, "score_norms_squared": norms})

    def norms(n: int) -> Tensor:
        return draw.uniform(n, low=0.2, high=4.0)

    yield case("worked: rewards 1 and 0, squared norms 1 and 3", tensor([1.0, 0]), tensor([1.0, 3]))
    n = draw.size(4, 7)
    yield case("equal norms: the mean reward", draw.rewards(n), torch.full((n,), 2.0).double())
    yield case("rewards of 0 and 1", draw.binary_rewards(n), norms(n))
    yield case("rewards of any sign", draw.rewards(n), norms(n))
    yield case("rewards far from 0", 50 + draw.rewards(n), norms(n))
    yield case("equal rewards", draw.rewards(1).repeat(n), norms(n))
    one_pulls = torch.zeros(n).double()
    one_pulls[draw.integer(0, n - 1)] = 2.5
    yield case("only one sample pulls", draw.rewards(n), one_pulls)
    yield case("norms of very different size", draw.rewards(n), norms(n) ** 6)
    yield case("one sample", draw.rewards(1), norms(1))
    yield case("short scores", draw.rewards(n), 0.01 * norms(n))
    yield case("no sample pulls", draw.rewards(n), torch.zeros(n).double())
    yield case("float32", draw.rewards(n).float(), norms(n).float())


def _ratio(numerator: Tensor, denominator: Tensor) -> Tensor:
    return torch.where(denominator == 0, torch.zeros_like(numerator), numerator / denominator)


def _weighted_mean(rewards: Tensor, weights: Tensor) -> Tensor:
    return _ratio((weights * rewards).sum(), weights.sum())


def _best_by_dot(rewards, score_norms_squared):
    if not score_norms_squared.any():
        return torch.zeros_like(rewards[0])
    return rewards @ (score_norms_squared / score_norms_squared.sum())


def _best_by_loop(rewards, score_norms_squared):
    above, below = 0.0, 0.0
    for reward, pull in zip(rewards.tolist(), score_norms_squared.tolist(), strict=True):
        above, below = above + pull * reward, below + pull
    return torch.tensor(above / below if below else 0.0, dtype=rewards.dtype)


def _best_by_least_squares(rewards, score_norms_squared):
    """The b that minimizes Σ ‖score‖² (R − b)², as a regression through the origin."""
    pull = score_norms_squared.sqrt()
    return torch.linalg.pinv(pull[:, None]).squeeze(0) @ (pull * rewards)


OPTIMAL_BASELINE = Exercise(
    reference=optimal_baseline,
    lesson="03_baselines",
    section="The best constant",
    points=3,
    difficulty=2,
    minutes=8,
    cases=_optimal_cases,
    mistakes=(
        Mistake(
            "the mean reward, which ignores the scores",
            lambda rewards, score_norms_squared: rewards.mean(),
            "Samples with long scores make more of the noise, so the baseline must suit them "
            "best: weigh each reward by ‖∇ log π‖².",
        ),
        Mistake(
            "rewards weighted by the norms, not their squares",
            lambda rewards, score_norms_squared: _weighted_mean(
                rewards, score_norms_squared.sqrt()
            ),
            "The argument holds squared norms already, and the variance is made of squares: no "
            "root.",
        ),
        Mistake(
            "rewards weighted by the squares of the squared norms",
            lambda rewards, score_norms_squared: _weighted_mean(rewards, score_norms_squared**2),
            "The argument is squared already.",
        ),
        Mistake(
            "the mean of ‖∇ log π‖²R, not divided by that of ‖∇ log π‖²",
            lambda rewards, score_norms_squared: (score_norms_squared * rewards).mean(),
            "A baseline is in units of reward: the norms must cancel.",
        ),
        Mistake(
            "the sum of ‖∇ log π‖²R, divided by nothing",
            lambda rewards, score_norms_squared: (score_norms_squared * rewards).sum(),
            "A weighted mean is divided by the sum of its weights.",
        ),
        Mistake(
            "the weighted mean, divided by n once more",
            lambda rewards, score_norms_squared: (
                _weighted_mean(rewards, score_norms_squared) / len(rewards)
            ),
            "The weights already sum to 1 once they are divided by their sum: add up, do not "
            "average again.",
        ),
        Mistake(
            "rewards weighted by the inverse of the squared norms",
            lambda rewards, score_norms_squared: _weighted_mean(
                rewards, score_norms_squared.clamp(min=1e-12).reciprocal()
            ),
            "That is how one averages noisy measurements. Here the strong pull counts *more*, "
            "since it is there that a bad baseline costs most.",
        ),
        Mistake(
            "rewards weighted by a softmax of the squared norms",
            lambda rewards, score_norms_squared: rewards @ score_norms_squared.softmax(0),
            "The weights are proportional to the squared norms; nothing is exponential here.",
        ),
        Mistake(
            "the difference from the mean reward alone, Cov(‖∇ log π‖², R) / E[‖∇ log π‖²]",
            lambda rewards, score_norms_squared: (
                _weighted_mean(rewards, score_norms_squared)
                - rewards.mean() * bool(score_norms_squared.any())
            ),
            "That is how far the best baseline lies from the mean reward: add the mean reward.",
        ),
        Mistake(
            "a mean over the rewarded samples only",
            lambda rewards, score_norms_squared: _ratio(
                (score_norms_squared * rewards).sum(), score_norms_squared[rewards > 0].sum()
            ),
            "Samples without reward have scores, too, and count below the line.",
        ),
        Mistake(
            "the ratio the other way round",
            lambda rewards, score_norms_squared: _ratio(
                score_norms_squared.sum(), (score_norms_squared * rewards).sum()
            ),
            "The rewards stand above the line, the plain weights below.",
        ),
        Mistake(
            "0/0 where no sample pulls",
            lambda rewards, score_norms_squared: (
                (score_norms_squared * rewards).sum() / score_norms_squared.sum()
            ),
            "When every score is zero any baseline will do, but NaN will not: keep the "
            "denominator above zero.",
        ),
        Mistake(
            "a sum divided by at least 1",
            lambda rewards, score_norms_squared: (
                (score_norms_squared * rewards).sum() / score_norms_squared.sum().clamp(min=1)
            ),
            "Short scores are no reason for a small baseline: guard the division with a tiny "
            "number only.",
        ),
    ),
    alternatives=(_best_by_dot, _best_by_loop, _best_by_least_squares),
    hints=(
        "The variance, as a function of b, is a parabola. Where is its derivative zero?",
        "E[‖s‖²(R − b)²] has derivative −2 E[‖s‖²(R − b)]. Set it to zero, solve for b, and put "
        "sample means (or sums) for the expectations. If all norms are 0, so is the result: keep "
        "the denominator above zero.",
        "A weighted mean of the rewards, safe when all weights are 0:\n\n"
        "    total = score_norms_squared.sum().clamp(min=torch.finfo(rewards.dtype).tiny)\n"
        "    return (... * rewards).sum() / ...",
    ),
)
