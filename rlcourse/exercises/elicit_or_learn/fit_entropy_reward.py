"""The line on which reward is bought with entropy."""

from collections.abc import Iterator
from dataclasses import replace
from math import e

import torch
from torch import Tensor

from rlcourse.algorithms.elicit_or_learn import fit_entropy_reward
from rlcourse.checks.calling import Case
from rlcourse.checks.cases import CaseSampler, tensor
from rlcourse.checks.exercise import Exercise, Mistake
from rlcourse.checks.sketch import Sketch


def _cases(draw: CaseSampler) -> Iterator[Case]:
    def case(label: str, entropy: Tensor, reward: Tensor) -> Case:
        return Case(label, {"entropy": entropy, "reward": reward})

    worked = tensor([2.0, 1.5, 1.0]).log()
    yield case("worked: e^H of 2, 1.5 and 1", worked, tensor([0.2, 0.5, 0.6]))
    entropy = draw.uniform(draw.size(5, 8), low=0.05, high=1.2)
    yield case("on a line", entropy, 0.9 - 0.3 * entropy.exp())
    for label, size, scale in (
        ("a noisy run", draw.size(8, 12), 0.1),
        ("more noise than line", draw.size(6, 9), 0.6),
        ("few steps", 3, 0.2),
    ):
        falling = torch.linspace(1.4, 0.2, size, dtype=torch.float64)
        entropy = falling + draw.uniform(size, low=-0.15, high=0.15)
        yield case(label, entropy, 0.8 - 0.4 * entropy.exp() + draw.normal(size, scale=scale))
    entropy = draw.uniform(7, low=0.1, high=0.9)
    yield case("entropy that rises with the reward", entropy, 0.1 + 0.5 * entropy + draw.uniform(7))
    yield case("rewards below 0", draw.uniform(6), -2 - draw.uniform(6))
    yield case("two steps", tensor([0.9, 0.2]), tensor([0.1, 0.45]))
    yield case("large entropies", 3 + draw.uniform(6), draw.uniform(6))
    yield case("float32", draw.uniform(8).float(), draw.uniform(8).float())
    level = torch.full((4,), 0.3, dtype=torch.float64)
    yield replace(case("entropies all alike", level, draw.uniform(4)), raises=True)
    yield replace(case("one step", tensor([0.3]), tensor([0.5])), raises=True)


def line_by_line(entropy, reward):
    x, y = entropy.double().exp(), reward.double()
    if len(x) < 2 or bool((x == x[0]).all()):
        raise ValueError("every slope fits a single entropy")
    dx, dy = x - x.mean(), y - y.mean()
    slope = (dx * dy).sum() / (dx * dx).sum()
    a = -slope
    b = y.mean() - slope * x.mean()
    return float(a), float(b)


def by_least_squares(entropy, reward):
    x, y = entropy.double().exp(), reward.double()
    if len(set(x.tolist())) < 2:
        raise ValueError("no line")
    table = torch.stack([-x, torch.ones_like(x)], dim=1)
    a, b = torch.linalg.lstsq(table, y).solution.tolist()
    return a, b


def by_covariance(entropy, reward):
    x, y = torch.exp(entropy.to(torch.float64)), reward.to(torch.float64)
    if x.numel() == 0 or x.max() - x.min() == 0:
        raise ValueError("no line")
    (xx, xy), (_, _) = torch.cov(torch.stack([x, y])).tolist()
    return -xy / xx, y.mean().item() + float(x.mean()) * -xy / xx


def by_sums(entropy, reward):
    """The normal equations, number by number."""
    points = [(e**h, r) for h, r in zip(entropy.tolist(), reward.tolist(), strict=True)]
    mean = sum(x for x, _ in points) / len(points)
    above = sum((x - mean) * r for x, r in points)
    below = sum((x - mean) ** 2 for x, _ in points)
    if below < 1e-24:  # all alike, but for rounding
        raise ValueError("no line")
    return -above / below, sum(r for _, r in points) / len(points) - above / below * mean


def _always(entropy, reward):
    try:
        return fit_entropy_reward(entropy, reward)
    except ValueError:
        return 0.0, float(reward.double().mean())


_edit = Sketch(line_by_line).edit


EXERCISE = Exercise(
    reference=fit_entropy_reward,
    lesson="13_elicit_or_learn",
    section="Reward bought with entropy",
    points=2,
    difficulty=2,
    minutes=8,
    cases=_cases,
    oracle=by_least_squares,
    mistakes=(
        Mistake(
            "a line in H, not in e^H",
            _edit("what the line is in", "entropy.double().exp()", "entropy.double()"),
            "R = −a·e^H + b is a line in x = e^H: take the exponential first.",
        ),
        Mistake(
            "a line in 2^H",
            _edit("what the line is in", "entropy.double().exp()", "2 ** entropy.double()"),
            "Entropies are in nats here, and the law has e^H.",
        ),
        Mistake(
            "a line in e^−H",
            _edit("what the line is in", "entropy.double().exp()", "(-entropy.double()).exp()"),
            "The minus stands in front of a, not in the exponent.",
        ),
        Mistake(
            "a line in log H",
            _edit("what the line is in", "entropy.double().exp()", "entropy.double().log()"),
            "e^H is the exponential of the entropy, not its logarithm.",
        ),
        Mistake(
            "the slope itself, with the sign that a should not have",
            _edit("a: its sign", "a = -slope", "a = slope"),
            "R = −a·e^H + b: a is *minus* the slope, positive where reward rises as entropy falls.",
        ),
        Mistake(
            "b first, then a",
            _edit("the order", "return float(a), float(b)", "return float(b), float(a)"),
            "Asked for is (a, b).",
        ),
        Mistake(
            "entropy as a function of reward",
            _edit(
                "the slope",
                "(dx * dy).sum() / (dx * dx).sum()",
                "(dy * dy).sum() / (dx * dy).sum()",
            ),
            "Least squares in R: the errors are the reward's, so divide by the spread of e^H.",
        ),
        Mistake(
            "a line through the origin",
            _edit(
                "the slope",
                "(dx * dy).sum() / (dx * dx).sum()",
                "(x * y).sum() / (x * x).sum()",
            ),
            "With an offset b, deviations from both means are what is multiplied.",
        ),
        Mistake(
            "a line through the first and the last step",
            _edit(
                "the slope",
                "(dx * dy).sum() / (dx * dx).sum()",
                "(y[-1] - y[0]) / (x[-1] - x[0])",
            ),
            "Two steps are noise; least squares uses all of them.",
        ),
        Mistake(
            "a covariance over n − 1 divided by a variance over n",
            _edit(
                "the slope",
                "(dx * dy).sum() / (dx * dx).sum()",
                "(dx * dy).sum() / (len(x) - 1) / x.var(correction=0)",
            ),
            "Divide both by the same number, or neither: it cancels.",
        ),
        Mistake(
            "a covariance over n divided by a variance over n − 1",
            _edit(
                "the slope",
                "(dx * dy).sum() / (dx * dx).sum()",
                "(dx * dy).mean() / x.var()",
            ),
            "`var` divides by n − 1 unless told otherwise. Divide both by the same number, or "
            "neither: it cancels.",
        ),
        Mistake(
            "a slope divided by the standard deviation of e^H",
            _edit(
                "the slope",
                "(dx * dy).sum() / (dx * dx).sum()",
                "(dx * dy).mean() / x.std(correction=0)",
            ),
            "The covariance is divided by the *variance*.",
        ),
        Mistake(
            "a correlation in place of a slope",
            _edit(
                "the slope",
                "(dx * dy).sum() / (dx * dx).sum()",
                "(dx * dy).sum() / ((dx * dx).sum() * (dy * dy).sum()).sqrt()",
            ),
            "A correlation has no unit and ends at 1; a is reward per unit of e^H.",
        ),
        Mistake(
            "an offset with the wrong sign of the slope",
            _edit("b", "y.mean() - slope * x.mean()", "y.mean() + slope * x.mean()"),
            "The line runs through both means: mean(R) = slope · mean(e^H) + b.",
        ),
        Mistake(
            "e to the mean of the entropies in place of the mean of e^H",
            _edit("b", "slope * x.mean()", "slope * x.log().mean().exp()"),
            "The line is in x = e^H: take the exponential of each step first, then the mean.",
        ),
        Mistake(
            "the mean reward for b",
            _edit("b", "y.mean() - slope * x.mean()", "y.mean()"),
            "b is where the line stands at e^H = 0, not in the middle of the data.",
        ),
        Mistake(
            "the largest reward for b",
            _edit("b", "y.mean() - slope * x.mean()", "y.max()"),
            "b is fitted, too: mean(R) minus slope · mean(e^H).",
        ),
        Mistake(
            "the reward at H = 0 for b",
            _edit("b", "y.mean() - slope * x.mean()", "y.mean() - slope * x.mean() + slope"),
            "At H = 0 the law says b − a, since e^0 is 1; b alone is asked for.",
        ),
        Mistake(
            "a fit where every slope would do",
            _always,
            "With a single entropy there is no line: raise ValueError.",
            telling=1,
        ),
    ),
    alternatives=(line_by_line, by_least_squares, by_covariance, by_sums),
    hints=(
        "With x = e^H the law is a straight line, R = slope · x + b. Which a belongs to the slope?",
        "The slope of least squares is Σ (x − mean x)(R − mean R) / Σ (x − mean x)², and the line "
        "runs through the two means. Where all x are alike there is none.",
        "With the reference's steps:\n\n"
        "    x, y = entropy.detach().double().exp(), reward.detach().double()\n"
        "    if len(x) == 0 or x.min() == x.max():\n"
        '        raise ValueError("...")\n'
        "    dx, dy = x - x.mean(), ...\n"
        "    slope = (dx * dy).sum() / ...\n"
        "    return -slope.item(), (y.mean() - ...).item()",
    ),
)
