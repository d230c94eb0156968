"""The critic's clipped loss."""

from collections.abc import Iterator
from functools import partial

import torch
from torch import Tensor

from rlcourse.algorithms.policies import masked_mean
from rlcourse.algorithms.ppo import value_loss
from rlcourse.checks.calling import Case
from rlcourse.checks.cases import CaseSampler, tensor
from rlcourse.checks.exercise import Exercise, Mistake
from rlcourse.checks.sketch import Sketch


def _cases(draw: CaseSampler) -> Iterator[Case]:
    def case(label: str, mask: Tensor, dtype=torch.float64, spread=0.4, **options) -> Case:
        old = draw.normal(*mask.shape)
        arguments = {
            "values": old + draw.normal(*mask.shape, scale=spread),
            "returns": old + draw.normal(*mask.shape),
            "old_values": old,
        }
        arguments = {name: value.to(dtype) for name, value in arguments.items()}
        return Case(label, {**arguments, "mask": mask, **options})

    def worked(label: str, value: float, target: float) -> Case:
        numbers = {"values": value, "returns": target, "old_values": 0.5}
        arguments = {name: tensor([[number]]) for name, number in numbers.items()}
        return Case(f"worked: {label}", {**arguments, "mask": torch.ones(1, 1) > 0})

    yield case("different lengths", draw.mask(draw.size(3, 4), draw.size(5, 6)))
    yield worked("inside the band", 0.6, 1.0)
    yield worked("outside, toward the target", 0.9, 1.0)
    yield worked("outside, away from the target", 0.1, 1.0)
    for label, logprobs, mask in draw.batches():
        yield case(label, mask, dtype=logprobs.dtype)
    mask = draw.mask(draw.size(4, 5), draw.size(6, 7))
    yield case("a narrow band", mask, clip=0.05)
    yield case("a wide band", mask, clip=5.0, spread=1.0)
    yield case("values have not moved", mask, spread=0.0)


def _by_loop(values, returns, old_values, mask, clip=0.2):
    total, count = values.new_zeros(()), 0
    for i in range(len(values)):
        for t in range(values.shape[1]):
            if mask[i, t]:
                old, target, v = float(old_values[i, t]), float(returns[i, t]), values[i, t]
                bounded = v if abs(float(v) - old) <= clip else old + (clip if v > old else -clip)
                apart, bounded_apart = abs(float(v) - target), abs(float(bounded) - target)
                total = total + (v - target if apart >= bounded_apart else bounded - target) ** 2
                count += 1
    return total / (2 * max(count, 1))


def _by_minmax(values, returns, old_values, mask, clip=0.2):
    old, target, real = old_values.detach(), returns.detach(), mask.to(values.dtype)
    bounded = torch.minimum(torch.maximum(values, old - clip), old + clip)
    apart = torch.stack([values - target, bounded - target]).abs().amax(0)
    return (apart.square() * real).sum() / (2 * real.sum().clamp(min=1))


def _by_where(values, returns, old_values, mask, clip=0.2):
    old, target = old_values.detach().double(), returns.detach().double()
    v, weights = values.double(), mask.double() / mask.double().sum().clamp(min=1)
    bounded = old + torch.clip(v - old, -clip, clip)
    own, near = (v - target).pow(2), (bounded - target).pow(2)
    return (0.5 * weights * torch.where(near > own, near, own)).sum().to(values.dtype)


def line_by_line(values, returns, old_values, mask, clip=0.2):
    targets, old = returns.detach(), old_values.detach()
    near = old + (values - old).clamp(-clip, clip)
    own, bounded = (values - targets) ** 2, (near - targets) ** 2
    larger = torch.maximum(own, bounded)
    mean = (larger * mask).sum() / mask.sum().clamp(min=1)
    return mean / 2


_edit = Sketch(line_by_line, masked_mean).edit
_NEAR = "old + (values - old).clamp(-clip, clip)"
_average = partial(_edit, "the average", "(larger * mask).sum() / mask.sum().clamp(min=1)")


EXERCISE = Exercise(
    reference=value_loss,
    lesson="05_ppo",
    section="Training the critic",
    points=2,
    difficulty=3,
    minutes=6,
    differentiable=("values",),
    constants=("returns", "old_values"),
    cases=_cases,
    mistakes=(
        Mistake(
            "the whole squared error, not half of it",
            _edit("the half", " / 2", ""),
            "The loss is *half* the mean squared error: its gradient is then the error itself.",
        ),
        Mistake(
            "the smaller of the two errors",
            _edit("the max", "torch.maximum", "torch.minimum"),
            "Pessimism again: for a loss that is the larger one.",
        ),
        Mistake(
            "the error of the bounded value alone",
            _edit("the max", "torch.maximum(own, bounded)", "bounded"),
            "A value that moved the wrong way would have no gradient back: keep the larger of the "
            "two errors.",
        ),
        Mistake(
            "the plain squared error, without a band",
            _edit("the max", "torch.maximum(own, bounded)", "own"),
            "The second error is that of the value held within ±clip of `old_values`.",
        ),
        Mistake(
            "the larger of the two means",
            _edit(
                "the max",
                "(larger * mask).sum() / mask.sum().clamp(min=1)",
                "torch.maximum(masked_mean(own, mask), masked_mean(bounded, mask))",
            ),
            "The larger error is taken for each token, and then the mean.",
        ),
        Mistake(
            "the mean of the two errors",
            _edit("the max", "torch.maximum(own, bounded)", "(own + bounded) / 2"),
            "Take the larger of the two for each token.",
        ),
        Mistake(
            "values that are held within ±clip of 0",
            _edit("the band: around what", _NEAR, "values.clamp(-clip, clip)"),
            "The band lies around the *old value*: old + clamp(values − old, −clip, clip).",
        ),
        Mistake(
            "a band that is relative, as for the ratio",
            _edit("the band: around what", _NEAR, "old * (values / old).clamp(1 - clip, 1 + clip)"),
            "A value may be 0 or negative: the band is a distance, ±clip, not a factor.",
        ),
        Mistake(
            "the change of the value, without the old one added back",
            _edit("the band: around what", "old + (values", "(values"),
            "Clamp the change, then add `old_values` back.",
        ),
        Mistake(
            "values in each other's place: the old one moves",
            _edit("the band: around what", "old + (values - old)", "values + (old - values)"),
            "It is the new value that is held near the old one.",
        ),
        Mistake(
            "a band of 0.2 whatever the argument says",
            _edit("the band: its width", "-clip, clip", "-0.2, 0.2"),
            "Use the argument `clip`, not its default.",
            telling=2,
        ),
        Mistake(
            "absolute errors",
            _edit(
                "the squares",
                "(values - targets) ** 2, (near - targets) ** 2",
                "(values - targets).abs(), (near - targets).abs()",
            ),
            "The mean of the returns minimizes the *squared* error; the absolute one gives the "
            "median, which for rewards of 0 and 1 is no use.",
        ),
        Mistake(
            "a bounded value without gradient, which halves it inside the band",
            _edit("the gradient: of the bounded error", "own, bounded)", "own, bounded.detach())"),
            "Inside the band the two errors are equal, and the max shares the gradient between "
            "them: compute both from `values` with their graph.",
        ),
        Mistake(
            "a mean that counts padding as tokens",
            _edit("the average", "mask.sum().clamp(min=1)", "mask.numel()"),
            "Divide by how many tokens are real, not by N · T.",
        ),
        Mistake(
            "a mean in which padding takes part",
            _average("larger.mean()"),
            "After the end there is no state to value: only entries with mask 1 count.",
        ),
        Mistake(
            "the mean of each completion's mean",
            _average("masked_mean(larger, mask, dim=1).mean()"),
            "Every real token of the batch counts the same: one mean over all of them.",
        ),
        Mistake(
            "a sum over the tokens",
            _edit("the average", " / mask.sum().clamp(min=1)", ""),
            "Take the mean, or the critic's step grows with the batch.",
        ),
        Mistake(
            "a division by 0 when every row is empty",
            _edit("a batch without tokens", ".clamp(min=1)", ""),
            "With no real token at all the loss is 0: keep the divisor at 1 or more.",
            telling=1,
        ),
        Mistake(
            "a loss with its sign turned",
            _edit("the sign", "return ", "return -"),
            "An error is to be made small: here the loss is not the negative of anything.",
        ),
        Mistake(
            "a loss that no gradient passes through",
            _edit("the gradient: of the loss", "(larger * mask)", "(larger.detach() * mask)"),
            "A detached critic never learns: only `returns` and `old_values` are constants.",
        ),
        Mistake(
            "a loss through which gradient flows into the targets",
            _edit("the constants", "returns.detach(), old_values.detach()", "returns, old_values"),
            "The targets are constants, or they come to meet the critic: `returns.detach()`, "
            "`old_values.detach()`.",
        ),
        Mistake(
            "a clamp between old · (1 − ε) and old · (1 + ε)",
            _edit(
                "the band: around what", _NEAR, "values.clamp(old * (1 - clip), old * (1 + clip))"
            ),
            "The band is old ± ε. In proportion to the old value it closes at 0, and is upside "
            "down below 0.",
        ),
    ),
    alternatives=(_by_loop, _by_minmax, _by_where, line_by_line),
    hints=(
        "It is the policy's pessimism once more, for a loss: two errors, and the larger counts.",
        "The second error is that of old_values + clamp(values − old_values, −clip, clip). Square "
        "both, take the larger for each token, the mean over real tokens, and half of it.",
        "Constants first:\n\n"
        "    returns, old_values = returns.detach(), old_values.detach()\n"
        "    near_old = old_values + ...\n"
        "    squared_error = torch.maximum(..., (near_old - returns).square())\n"
        "    return masked_mean(squared_error, mask) / ...",
    ),
)
