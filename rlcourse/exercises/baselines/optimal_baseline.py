"""Which constant baseline makes a gradient's noise least."""

from collections.abc import Iterator

import torch
from torch import Tensor

from rlcourse.algorithms.baselines import optimal_baseline
from rlcourse.checks.calling import Case
from rlcourse.checks.cases import CaseSampler, tensor
from rlcourse.checks.exercise import Exercise, Mistake
from rlcourse.checks.sketch import Sketch


def _optimal_cases(draw: CaseSampler) -> Iterator[Case]:
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
    yield case("every reward below 0", -draw.rewards(n).abs(), norms(n))
    one_pulls = torch.zeros(n).double()
    one_pulls[draw.integer(0, n - 1)] = 2.5
    yield case("only one sample pulls", draw.rewards(n), one_pulls)
    yield case("norms of very different size", draw.rewards(n), norms(n) ** 6)
    yield case("one sample", draw.rewards(1), norms(1))
    yield case("short scores", draw.rewards(n), 0.01 * norms(n))
    yield case("long scores", draw.rewards(n), 100 * norms(n))
    yield case("no sample pulls", draw.rewards(n), torch.zeros(n).double())
    yield case("float32", draw.rewards(n).float(), norms(n).float())


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


def line_by_line(rewards, score_norms_squared):
    weights = score_norms_squared
    above = (weights * rewards).sum()
    below = weights.sum()
    return ratio(above, below)


def ratio(above: Tensor, below: Tensor) -> Tensor:
    return torch.where(below == 0, torch.zeros_like(above), above / below)


_edit = Sketch(line_by_line, ratio).edit


EXERCISE = Exercise(
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
            _edit("the mean", "ratio(above, below)", "rewards.mean()"),
            "Samples with long scores make more of the noise, so the baseline must suit them "
            "best: weigh each reward by ‖∇ log π‖².",
        ),
        Mistake(
            "rewards weighted by the norms, not their squares",
            _edit("the weights", "= score_norms_squared", "= score_norms_squared.sqrt()"),
            "The argument holds squared norms already, and the variance is made of squares: no "
            "root.",
        ),
        Mistake(
            "rewards weighted by the squares of the squared norms",
            _edit("the weights", "= score_norms_squared", "= score_norms_squared**2"),
            "The argument is squared already.",
        ),
        Mistake(
            "the mean of ‖∇ log π‖²R, not divided by that of ‖∇ log π‖²",
            _edit("the mean", "ratio(above, below)", "(weights * rewards).mean()"),
            "A baseline is in units of reward: the norms must cancel.",
        ),
        Mistake(
            "the sum of ‖∇ log π‖²R, divided by nothing",
            _edit("the mean", "ratio(above, below)", "above"),
            "A weighted mean is divided by the sum of its weights.",
        ),
        Mistake(
            "the weighted mean, divided by n once more",
            _edit("the mean", "ratio(above, below)", "ratio(above, below) / len(rewards)"),
            "The weights already sum to 1 once they are divided by their sum: add up, do not "
            "average again.",
        ),
        Mistake(
            "rewards weighted by the inverse of the squared norms",
            _edit(
                "the weights",
                "= score_norms_squared",
                "= score_norms_squared.clamp(min=1e-12).reciprocal()",
            ),
            "That is how one averages noisy measurements. Here the strong pull counts *more*, "
            "since it is there that a bad baseline costs most.",
        ),
        Mistake(
            "rewards weighted by a softmax of the squared norms",
            _edit("the weights", "= score_norms_squared", "= score_norms_squared.softmax(0)"),
            "The weights are proportional to the squared norms; nothing is exponential here.",
        ),
        Mistake(
            "the difference from the mean reward alone, Cov(‖∇ log π‖², R) / E[‖∇ log π‖²]",
            _edit(
                "the mean",
                "ratio(above, below)",
                "ratio(above, below) - rewards.mean() * bool(weights.any())",
            ),
            "That is how far the best baseline lies from the mean reward: add the mean reward.",
        ),
        Mistake(
            "a mean over the rewarded samples only",
            _edit("the samples", "= weights.sum()", "= weights[rewards > 0].sum()"),
            "Samples without reward have scores, too, and count below the line.",
        ),
        Mistake(
            "the ratio the other way round",
            _edit("the mean", "ratio(above, below)", "ratio(below, above)"),
            "The rewards stand above the line, the plain weights below.",
        ),
        Mistake(
            "0/0 where no sample pulls",
            _edit("no pull", "ratio(above, below)", "above / below"),
            "When every score is zero any baseline will do, but NaN will not: keep the "
            "denominator above zero.",
            telling=1,
        ),
        Mistake(
            "a sum divided by at least 1",
            _edit("no pull", "ratio(above, below)", "above / below.clamp(min=1)"),
            "Short scores are no reason for a small baseline: guard the division with a tiny "
            "number only.",
            telling=1,
        ),
    ),
    alternatives=(_best_by_dot, _best_by_loop, _best_by_least_squares, line_by_line),
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
