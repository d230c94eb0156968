"""PPO's clipped loss: the cases it must survive, and other ways to write it."""

from collections.abc import Iterator

import torch
from torch import Tensor

from rlcourse.algorithms.ppo import ppo_clip_loss
from rlcourse.checks.calling import Case
from rlcourse.checks.cases import CaseSampler, tensor
from rlcourse.checks.exercise import Exercise
from rlcourse.exercises.ppo.ppo_clip_loss_mistakes import MISTAKES, line_by_line


def _case(draw: CaseSampler, label: str, logprobs: Tensor, mask: Tensor, **given) -> Case:
    """Ratios on both sides of the band and within it; advantages of either sign."""
    spread = draw.normal(*logprobs.shape, scale=0.5)
    arguments = {
        "logprobs": logprobs,
        "old_logprobs": (logprobs - spread).to(logprobs.dtype),
        "advantages": draw.rewards(len(logprobs), logprobs.dtype),
        "mask": mask,
    }
    return Case(label, {**arguments, **given})


def _worked(ratio: float, advantage: float) -> Case:
    arguments = {
        "logprobs": tensor([[0.02 * ratio]]).log(),
        "old_logprobs": tensor([[0.02]]).log(),
        "advantages": tensor([advantage]),
        "mask": torch.ones(1, 1) > 0,
    }
    return Case(f"worked: ratio {ratio:g}, advantage {advantage:+g}", arguments)


def _all_kinds() -> Case:
    """Inside, above and below the band, praised and blamed, and a padded token outside it."""
    ratios = tensor([[1.1, 1.5, 0.5, 1.5], [0.9, 1.5, 0.5, 3.0]])
    return Case(
        "every kind of token",
        {
            "logprobs": ratios.log() - 4,
            "old_logprobs": torch.full_like(ratios, -4.0),
            "advantages": tensor([1.0, -2.0]),
            "mask": torch.tensor([[1, 1, 1, 1], [1, 1, 1, 0]]) > 0,
        },
    )


def _cases(draw: CaseSampler) -> Iterator[Case]:
    yield _all_kinds()
    for ratio, advantage in ((1.5, 1), (10, 1), (0.5, 1), (0.556, -1), (0.111, -1), (1.5, -1)):
        yield _worked(ratio, advantage)
    yield _worked(1.0, -1)
    # Always the same: a second bound on the ratio or on the advantage shows in each of them.
    for ratio, advantage in ((50, -1), (20, -0.5), (15, -2.5), (1.1, 2.5)):
        yield _worked(ratio, advantage)
    for label, logprobs, mask in draw.batches():
        yield _case(draw, label, logprobs, mask)
    rows, tokens = draw.size(4, 5), draw.size(6, 8)
    logprobs, mask = draw.logprobs(rows, tokens), draw.mask(rows, tokens)
    yield _case(draw, "the first update", logprobs, mask, old_logprobs=logprobs)
    yield _case(draw, "a narrow band", logprobs, mask, clip=0.05)
    yield _case(draw, "a wide band", logprobs, mask, clip=0.6)
    per_token = draw.rewards(rows * tokens).reshape(rows, tokens)
    yield _case(draw, "an advantage for every token", logprobs, mask, advantages=per_token)
    ratios = tensor([[0.5, 0.6, 1.5], [0.5, 1.5, 1.5]])
    some = {"mask": torch.ones(2, 3) > 0, "advantages": tensor([0.0, 1.0])}
    some |= {"logprobs": ratios.log() - 2, "old_logprobs": torch.full_like(ratios, -2.0)}
    yield Case("advantages of 0: a group of equal rewards", some)
    praised = draw.uniform(rows, low=0.3, high=2.0)
    yield _case(draw, "everything praised", logprobs, mask, advantages=praised)
    yield _case(draw, "everything blamed", logprobs, mask, advantages=-praised)
    rare = (logprobs - 120).float()
    yield _case(draw, "tokens of probability e⁻¹²⁰", rare, mask)


def _columns(advantages: Tensor) -> Tensor:
    return advantages.detach()[:, None] if advantages.dim() == 1 else advantages.detach()


def by_loop(logprobs, old_logprobs, advantages, mask, clip=0.2):
    total, stopped, count = logprobs.new_zeros(()), 0, int(mask.sum())
    for i in range(len(logprobs)):
        for t in range(logprobs.shape[1]):
            if not mask[i, t]:
                continue
            a = float(advantages[i] if advantages.dim() == 1 else advantages[i, t])
            ratio = (logprobs[i, t] - float(old_logprobs[i, t])).exp()
            inside = a == 0 or (ratio <= 1 + clip if a > 0 else ratio >= 1 - clip)
            stopped += not bool(inside)
            total = total + a * (ratio if inside else (1 + clip if a > 0 else 1 - clip))
    return -total / max(count, 1), logprobs.new_tensor(stopped / max(count, 1))


def by_loss_terms(logprobs, old_logprobs, advantages, mask, clip=0.2):
    """As many published codes have it: the larger of two losses."""
    real, a = mask.to(logprobs.dtype), _columns(advantages)
    ratio = torch.where(mask.bool(), logprobs - old_logprobs.detach(), 0.0).exp()
    loss, loss_clipped = -a * ratio, -a * ratio.clamp(1 - clip, 1 + clip)
    count = real.sum().clamp(min=1)
    stopped = ((loss_clipped > loss).to(logprobs.dtype) * real).sum() / count
    return (torch.max(loss, loss_clipped) * real).sum() / count, stopped


def by_sign(logprobs, old_logprobs, advantages, mask, clip=0.2):
    """The form without a min: the bound is (1 + ε) A or (1 − ε) A, by the sign of A."""
    weights = mask.double() / mask.double().sum().clamp(min=1)
    a = _columns(advantages).double().expand_as(logprobs)
    ratio = (logprobs.double() - old_logprobs.detach().double()).masked_fill(~mask.bool(), 0).exp()
    bound = torch.where(a >= 0, 1 + clip, 1 - clip) * a
    flows = ratio * a <= bound
    objective = torch.where(flows, ratio * a, bound)
    outcome = -(weights * objective).sum(), (weights * ~flows).sum()
    return tuple(x.to(logprobs.dtype) for x in outcome)


EXERCISE = Exercise(
    reference=ppo_clip_loss,
    lesson="05_ppo",
    section="The pessimistic min",
    points=5,
    difficulty=4,
    minutes=12,
    differentiable=("logprobs",),
    constants=("old_logprobs", "advantages"),
    derived=("[1]",),
    cases=_cases,
    mistakes=MISTAKES,
    alternatives=(by_loop, by_loss_terms, by_sign, line_by_line),
    hints=(
        "Everything happens per token, in the shape (N, T): the ratio, two products with the "
        "advantage, the smaller of the two. Averages come last.",
        "The ratio is exp of a difference of log-probs. Multiply it by A, and its clamped version "
        "by A, and only then take the min. A token's gradient is stopped where the clipped "
        "product is *strictly smaller*.",
        "Two helpers from lessons 01 and 04:\n\n"
        "    ratio = importance_weights(logprobs, old_logprobs, mask)\n"
        "    advantages = advantages.detach()\n"
        "    if advantages.dim() == 1:\n"
        "        advantages = advantages[:, None]\n"
        "    unclipped = ...\n"
        "    clipped = ratio.clamp(..., ...) * advantages\n"
        "    objective = torch.minimum(unclipped, clipped)\n"
        "    stopped = (... < ...).to(objective.dtype)\n"
        "    return -masked_mean(objective, mask), masked_mean(stopped, mask)",
    ),
)
