"""GRPO's loss: the cases it must survive, and other ways to write it."""

from collections.abc import Iterator

import torch
from torch import Tensor

from rlcourse.algorithms.grpo import grpo_loss
from rlcourse.algorithms.policies import masked_mean
from rlcourse.checks.calling import Case
from rlcourse.checks.cases import CaseSampler, mask_of, tensor
from rlcourse.checks.exercise import Exercise, Mistake
from rlcourse.checks.sketch import Sketch
from rlcourse.exercises.ppo.clipped_loss_mistakes import both_signs, of_the_clip


def _near(draw: CaseSampler, logprobs: Tensor, spread: float) -> Tensor:
    """Log-probs of another policy, not far from these."""
    return (logprobs + spread * draw.normal(*logprobs.shape)).to(logprobs.dtype)


def _case(draw: CaseSampler, label: str, logprobs: Tensor, mask: Tensor, **given) -> Case:
    arguments = {
        "logprobs": logprobs,
        "old_logprobs": _near(draw, logprobs, 0.4),
        "ref_logprobs": _near(draw, logprobs, 0.6),
        "advantages": draw.rewards(len(logprobs), logprobs.dtype),
        "mask": mask,
    }
    return Case(label, {**arguments, **given})


def _worked(label: str, probability: float, reference: float, advantage: float, **options) -> Case:
    """One token whose old probability was ½."""
    names = ("logprobs", "old_logprobs", "ref_logprobs")
    of_token = {n: tensor([[p]]).log() for n, p in zip(names, (probability, 0.5, reference))}  # noqa: B905
    mask = torch.ones(1, 1) > 0
    return Case(label, {**of_token, "advantages": tensor([advantage]), "mask": mask, **options})


def _cases(draw: CaseSampler) -> Iterator[Case]:
    rows, tokens = draw.size(3, 4), draw.size(5, 6)
    logprobs, mask = draw.logprobs(rows, tokens), draw.mask(rows, tokens)
    yield _case(draw, "different lengths", logprobs, mask, **both_signs(draw, logprobs))
    boundary = {"clip": 0.2, "beta": 0.02}
    yield _worked("worked: just inside the band", 0.5999, 0.1, 0.01, **boundary)
    yield _worked("worked: outside, and praised", 0.75, 0.5, 1.0, clip=0.2, beta=0.0)
    yield _worked("worked: outside, and blamed", 0.75, 0.5, -1.0, clip=0.2, beta=0.0)
    yield _worked("worked: below the band, and blamed", 0.278, 0.5, -1.0, clip=0.2, beta=0.0)
    yield _worked("worked: a ratio of 1.5 in a band of 0.8", 0.75, 0.5, 1.0, clip=0.8, beta=0.0)
    for label, logprobs, mask in draw.batches():
        yield _case(draw, label, logprobs, mask)
    rows, tokens = draw.shape()
    logprobs, mask = draw.logprobs(rows, tokens), draw.mask(rows, tokens)
    on_policy = {"old_logprobs": logprobs, "ref_logprobs": logprobs}
    yield _case(draw, "the first update", logprobs, mask, **on_policy)
    yield _case(draw, "another clip", logprobs, mask, clip=0.05)
    yield _case(draw, "a strong leash", logprobs, mask, beta=1.5)
    yield _case(draw, "no leash", logprobs, mask, beta=0.0)
    per_token = draw.rewards(rows * tokens).reshape(rows, tokens)
    yield _case(draw, "an advantage for every token", logprobs, mask, advantages=per_token)
    square, ends = draw.logprobs(3, 3), mask_of(torch.tensor([3, 1, 2]), 3)
    blamed = -draw.rewards(3).abs()
    yield _case(draw, "a padded square, all blamed", square, ends, advantages=blamed)
    yield _case(draw, "no advantage", logprobs, mask, advantages=torch.zeros(rows).double())
    # Always the same: a second bound on the ratio or on the advantage shows in each of them.
    for ratio, advantage in ((20, -1.0), (40, -0.5), (15, -2.0)):
        label = f"ratio {ratio}, advantage {advantage:g}"
        yield _worked(label, 0.5, 0.5, advantage, old_logprobs=tensor([[0.5 / ratio]]).log())
    one_right = torch.full((8,), -0.3535, dtype=torch.float64)
    one_right[draw.integer(0, 7)] = 2.4744  # (1 − 1/8) / std
    logprobs, mask = draw.logprobs(8, 3), torch.ones(8, 3) > 0
    yield _case(draw, "one right of eight", logprobs, mask, advantages=one_right)
    yield _case(draw, "one wrong of eight", logprobs, mask, advantages=-one_right)


def _columns(advantages: Tensor) -> Tensor:
    return advantages.detach()[:, None] if advantages.dim() == 1 else advantages.detach()


def by_loop(logprobs, old_logprobs, ref_logprobs, advantages, mask, clip=0.2, beta=0.04):
    total = logprobs.new_zeros(())
    for i in range(len(logprobs)):
        row, length = logprobs.new_zeros(()), int(mask[i].sum())
        for t in range(length):
            a = float(advantages[i] if advantages.dim() == 1 else advantages[i, t])
            ratio = (logprobs[i, t] - float(old_logprobs[i, t])).exp()
            objective = torch.min(a * ratio, a * ratio.clamp(1 - clip, 1 + clip))
            x = float(ref_logprobs[i, t]) - logprobs[i, t]
            row = row + objective - beta * (x.exp() - 1 - x)
        total = total - row / max(length, 1)
    return total / len(logprobs)


def by_cases(logprobs, old_logprobs, ref_logprobs, advantages, mask, clip=0.2, beta=0.04):
    """The clip as a question: does the gradient flow?"""
    real = mask.to(logprobs.dtype)
    ratio, a = torch.exp(logprobs - old_logprobs.detach()), _columns(advantages)
    objective = torch.where(a >= 0, ratio.clamp(max=1 + clip) * a, ratio.clamp(min=1 - clip) * a)
    x = torch.exp(ref_logprobs.detach() - logprobs)
    kl = x - x.log() - 1
    rows = ((objective - beta * kl) * real).sum(-1) / real.sum(-1).clamp(min=1)
    return -rows.mean()


def by_weights(logprobs, old_logprobs, ref_logprobs, advantages, mask, clip=0.2, beta=0.04):
    """Every token's weight first, in float64; penalty and objective averaged apart."""
    weights = mask.double() / mask.double().sum(1, keepdim=True).clamp(min=1) / len(mask)
    ratio, a = (logprobs.double() - old_logprobs.detach().double()).exp(), _columns(advantages)
    objective = torch.stack([ratio * a, ratio.clip(1 - clip, 1 + clip) * a]).amin(0)
    x = ref_logprobs.detach().double() - logprobs.double()
    loss = beta * (weights * (torch.expm1(x) - x)).sum() - (weights * objective).sum()
    return loss.to(logprobs.dtype)


def line_by_line(logprobs, old_logprobs, ref_logprobs, advantages, mask, clip=0.2, beta=0.04):
    a = advantages.detach()
    if a.dim() == 1:
        a = a[:, None]
    old = old_logprobs.detach()
    ratio = (logprobs - old).exp()
    clipped = ratio.clamp(1 - clip, 1 + clip)
    ref = ref_logprobs.detach()
    x = ref - logprobs
    kl = x.exp() - 1 - x
    penalty = beta * kl
    objective = torch.minimum(ratio * a, clipped * a)
    per_token = objective - penalty
    rows = (per_token * mask).sum(1) / mask.sum(1).clamp(min=1)
    return -rows.mean()


_sketch = Sketch(line_by_line, masked_mean)
_edit = _sketch.edit
_MIN = "torch.minimum(ratio * a, clipped * a)"
_ROWS = "(per_token * mask).sum(1) / mask.sum(1).clamp(min=1)"

MISTAKES = (
    Mistake(
        "a mean over all real tokens of the batch",
        _edit("the averages: over tokens", _ROWS, "masked_mean(per_token, mask)"),
        "That is DAPO's average, in lesson 07: GRPO takes each completion's mean first, and then "
        "the mean of these.",
    ),
    Mistake(
        "a mean that counts padding as tokens",
        _edit("the averages: over tokens", _ROWS, "(per_token * mask).mean(1)"),
        "Divide each row by the number of its own real tokens, not by T.",
    ),
    Mistake(
        "a mean in which padding takes part",
        _edit("the averages: over tokens", _ROWS, "per_token.mean(1)"),
        "What stands after the end was never said: only entries with mask 1 enter the mean.",
    ),
    Mistake(
        "a sum over each completion's tokens",
        _edit("the averages: over tokens", _ROWS, "(per_token * mask).sum(1)"),
        "REINFORCE summed; GRPO's equation 3 divides each completion's sum by its length.",
    ),
    Mistake(
        "a mean over the completions that are not empty",
        _edit(
            "the averages: over completions",
            "rows.mean()",
            "rows.sum() / mask.bool().any(1).sum().clamp(min=1)",
        ),
        "An empty row adds 0 and is counted all the same: divide by N.",
        telling=1,
    ),
    Mistake(
        "a division by the length 0 of an empty row",
        _edit("the averages: empty rows", "mask.sum(1).clamp(min=1)", "mask.sum(1)"),
        "0/0 is NaN, and one NaN spoils the whole batch: an empty row counts as 0.",
        telling=2,
    ),
    Mistake(
        "a sum over completions",
        _edit("the averages: over completions", "rows.mean()", "rows.sum()"),
        "The loss estimates an expectation: as a sum, twice the batch would mean twice the step.",
    ),
    Mistake(
        "a KL that is rewarded",
        _edit("the KL: its sign", "objective - penalty", "objective + penalty"),
        "The objective *loses* β times the KL; in the loss, its negative, the KL has a plus.",
    ),
    Mistake(
        "the KL the other way around",
        _edit("the KL: its direction", "ref - logprobs", "logprobs - ref"),
        "The samples come from πθ, so k3 is built on πref/πθ: e^{−d} − 1 + d with "
        "d = log πθ − log πref.",
    ),
    Mistake(
        "k3 without its −1",
        _edit("the KL: its estimate", "x.exp() - 1 - x", "x.exp() - x"),
        "Where the policies agree the penalty must be 0: x − 1 − log x.",
    ),
    Mistake(
        "k1, the plain log-ratio, as the penalty",
        _edit("the KL: its estimate", "x.exp() - 1 - x", "-x"),
        "As a loss k1 has a gradient that does not even depend on the reference (lesson 04); "
        "equation 4 is k3.",
    ),
    Mistake(
        "k2, half the squared log-ratio, as the penalty",
        _edit("the KL: its estimate", "x.exp() - 1 - x", "x**2 / 2"),
        "k2 is a fair choice (lesson 04), but not the one of equation 4, which is k3.",
    ),
    Mistake(
        "a penalty that is not weighed by β",
        _edit("the KL: its weight", "beta * kl", "1 * kl"),
        "The leash has a strength: multiply the KL by `beta`.",
    ),
    Mistake(
        "a loss without the penalty",
        _edit("the KL: its weight", "beta * kl", "0 * kl"),
        "Equation 3 subtracts β times the KL to the reference from every token's objective.",
    ),
    Mistake(
        "a β of 0.04 whatever the argument says",
        _edit("the KL: its weight", "beta * kl", "0.04 * kl"),
        "Use the argument `beta`, not its default.",
    ),
    Mistake(
        "an ε of 0.2 whatever the argument says",
        _edit("the clip: its band", "1 - clip, 1 + clip", "0.8, 1.2"),
        "Use the argument `clip`, not its default.",
        telling=1,
    ),
    Mistake(
        "a penalty without gradient",
        _edit("the KL: its gradient", "- penalty", "- penalty.detach()"),
        "A constant pulls nowhere: the penalty must be computed from `logprobs` with its graph.",
    ),
    Mistake(
        "the penalty inside the min",
        _edit(
            "the KL: its place",
            "(ratio * a,",
            "(ratio * a - penalty,",
            "objective - penalty",
            "objective",
        ),
        "The clip limits the reward's push only; the leash pulls outside the band, too: subtract "
        "the KL after the min.",
    ),
    Mistake(
        "the penalty subtracted from the advantage",
        _edit("the KL: its place", "= beta * kl", "= 0\n    a = a - (beta * kl).detach()"),
        "That is PPO's way, a shaped reward: GRPO leaves the advantage alone and puts the KL into "
        "the loss, where it has a gradient of its own.",
    ),
    Mistake(
        "a KL to the policy that sampled",
        _edit("the KL: to whom", "ref = ref_logprobs", "ref = old_logprobs"),
        "The leash holds the policy near the *reference*; staying near πold is the clip's work.",
    ),
    Mistake(
        "a ratio to the reference",
        _edit("the ratio: what it is made of", "old = old_logprobs", "old = ref_logprobs"),
        "The ratio corrects for who *sampled*, which is πold.",
    ),
    Mistake(
        "a band for the log-ratio",
        _edit(
            "the clip: its band",
            "ratio.clamp(1 - clip, 1 + clip)",
            "ratio.log().clamp(-clip, clip).exp()",
        ),
        "The ratio itself is clipped, to between 1 − ε and 1 + ε; log(1 + ε) is not ε.",
    ),
    Mistake(
        "ratios of 0 on padding, clamped up to 1 − ε",
        _edit(
            "the averages: over tokens",
            "(logprobs - old).exp()",
            "(logprobs - old).exp() * mask",
            "beta * kl",
            "beta * kl * mask",
            "(per_token * mask).sum(1)",
            "per_token.sum(1)",
        ),
        "The clamp makes 0.8 of a 0, and 0.8 · A is no longer nothing: leave padding out when you "
        "average, not before the clip.",
    ),
    Mistake(
        "a ratio of the policy to itself, which is always 1",
        _edit("the ratio: what it is made of", "old = old_logprobs", "old = logprobs"),
        "The ratio is to the policy that *sampled*, `old_logprobs`; from the second update on the "
        "two differ, and the clip has something to do.",
    ),
    Mistake(
        "log-probs in place of the ratio",
        _edit("the ratio: what it is made of", _MIN, "logprobs * a"),
        "That is REINFORCE: right at the first update, uncorrected at every later one.",
    ),
    Mistake(
        "the ratio of whole completions",
        _edit(
            "the ratio: what it is made of",
            "(logprobs - old)",
            "((logprobs - old) * mask).sum(1, keepdim=True)",
        ),
        "GRPO weighs each token by its own ratio; a product over the completion has far more "
        "variance.",
    ),
    Mistake(
        "a loss through which gradient flows into the reference",
        _edit("the constants: the reference", "ref_logprobs.detach()", "ref_logprobs"),
        "The reference is frozen: `ref_logprobs.detach()`.",
    ),
    *of_the_clip(_sketch),
)


EXERCISE = Exercise(
    reference=grpo_loss,
    lesson="06_grpo",
    section="The loss",
    points=6,
    difficulty=4,
    minutes=25,
    differentiable=("logprobs",),
    constants=("old_logprobs", "ref_logprobs", "advantages"),
    cases=_cases,
    mistakes=MISTAKES,
    alternatives=(by_loop, by_cases, by_weights, line_by_line),
    hints=(
        "Build it per token, in the shape (N, T): the clipped objective of lesson 05, then the "
        "penalty. Averages come last.",
        "Per token: min(ratio · A, clip(ratio) · A) − β k3. Then the mean over each row's real "
        "tokens, then the mean over rows, then the minus. Old and reference log-probs, and the "
        "advantages, are constants.",
        "Tools from lessons 01 and 04:\n\n"
        "    ratio = importance_weights(logprobs, old_logprobs, mask)\n"
        "    advantages = advantages.detach()\n"
        "    if advantages.dim() == 1:\n"
        "        advantages = advantages[:, None]\n"
        "    objective = torch.minimum(..., ...)\n"
        '    per_token = objective - beta * kl_estimates(logprobs, ref_logprobs, "k3")\n'
        "    return -masked_mean(per_token, mask, dim=...).mean()",
    ),
)
