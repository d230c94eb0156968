"""GSPO's loss: one ratio for a whole completion."""

from collections.abc import Iterator

import torch

from rlcourse.algorithms.beyond_grpo import gspo_loss
from rlcourse.algorithms.policies import masked_mean
from rlcourse.checks.calling import Case
from rlcourse.checks.cases import CaseSampler, tensor
from rlcourse.checks.exercise import Exercise, Mistake
from rlcourse.exercises.beyond_grpo.clipped_loss_mistakes import (
    batches,
    case_of,
    of_the_clip,
    one_token,
)


def _cases(draw: CaseSampler) -> Iterator[Case]:
    yield from batches(draw)
    for ratio, advantage in ((1.5, 1.0), (1.5, -1.0), (0.556, -1.0)):
        yield one_token(f"worked: ratio {ratio}, advantage {advantage:+.0f}", ratio, advantage)
    old = tensor([[-1.0, -2.0]])
    ratios = tensor([[2.0, 0.5]]).log()
    arguments = {"old_logprobs": old, "advantages": tensor([1.0])}
    both = torch.ones(1, 2) > 0
    yield case_of(draw, "worked: ratios 2 and ½ make 1", old + ratios, both, **arguments)
    rows, tokens = draw.size(5, 6), draw.size(3, 4)
    logprobs, mask = draw.logprobs(rows, tokens), draw.mask(rows, tokens)
    yield case_of(draw, "a narrow band", logprobs, mask, clip=0.01)
    yield case_of(draw, "a wide band", logprobs, mask, clip=2.0)
    far = logprobs + draw.normal(rows, 1)
    yield case_of(draw, "whole completions that moved far", logprobs, mask, old_logprobs=far)


def _per_row(x, advantages, low, high, pick=torch.minimum):
    a = advantages.detach()
    return pick(x * a, x.clamp(1 - low, 1 + high) * a)


def _mean_log_ratio(logprobs, old_logprobs, mask):
    return masked_mean(logprobs - old_logprobs, mask, dim=1)


def _loss_of(ratio, advantages, mask, clip, pick=torch.minimum):
    """Rows averaged, the empty ones as 0."""
    real = mask.bool().any(1)
    return -(_per_row(ratio, advantages, clip, clip, pick) * real).mean()


def _variant(ratio=None, objective=None, sign=1.0, band=lambda clip: clip, average=None):
    """`gspo_loss` with one of its parts replaced; ratios and objectives as for tokens."""

    def loss(logprobs, old_logprobs, advantages, mask, clip=0.2):
        new = masked_mean(logprobs, mask, dim=1)[:, None]
        old = masked_mean(old_logprobs, mask, dim=1)[:, None]
        ratios = (ratio or (lambda new, old: (new - old.detach()).exp()))(new, old)
        epsilon = band(clip)
        if objective is None:
            rows = _per_row(ratios[:, 0], advantages, epsilon, epsilon)
        else:
            rows = objective(ratios, advantages, epsilon, epsilon)[:, 0]
        real = mask.bool().any(1)
        rows = rows * real
        return -sign * (rows.mean() if average is None else average(rows, mask))

    return loss


def _product(logprobs, old_logprobs, advantages, mask, clip=0.2):
    total = ((logprobs - old_logprobs.detach()) * mask).sum(1)
    return _loss_of(total.exp(), advantages, mask, clip)


def _mean_of_ratios(logprobs, old_logprobs, advantages, mask, clip=0.2):
    ratio = masked_mean((logprobs - old_logprobs.detach()).exp(), mask, dim=1)
    return _loss_of(ratio, advantages, mask, clip)


def _token_ratios(logprobs, old_logprobs, advantages, mask, clip=0.2):
    ratio, a = (logprobs - old_logprobs.detach()).exp(), advantages.detach()[:, None]
    objective = torch.minimum(ratio * a, ratio.clamp(1 - clip, 1 + clip) * a)
    return -masked_mean(objective, mask, dim=1).mean()


def _ppo(logprobs, old_logprobs, advantages, mask, clip=0.2):
    ratio, a = (logprobs - old_logprobs.detach()).exp(), advantages.detach()[:, None]
    return -masked_mean(torch.minimum(ratio * a, ratio.clamp(1 - clip, 1 + clip) * a), mask)


def _over_padding(logprobs, old_logprobs, advantages, mask, clip=0.2):
    ratio = ((logprobs - old_logprobs.detach()) * mask).mean(1).exp()
    return _loss_of(ratio, advantages, mask, clip)


def _with_padding(logprobs, old_logprobs, advantages, mask, clip=0.2):
    ratio = (logprobs - old_logprobs.detach()).mean(1).exp()
    return _loss_of(ratio, advantages, mask, clip)


def _empty_counts(logprobs, old_logprobs, advantages, mask, clip=0.2):
    ratio = _mean_log_ratio(logprobs, old_logprobs.detach(), mask).exp()
    return -_per_row(ratio, advantages, clip, clip).mean()


def _nan_if_empty(logprobs, old_logprobs, advantages, mask, clip=0.2):
    total = ((logprobs - old_logprobs.detach()) * mask).sum(1)
    return -_per_row((total / mask.sum(1)).exp(), advantages, clip, clip).mean()


def _one_for_the_batch(logprobs, old_logprobs, advantages, mask, clip=0.2):
    ratio = masked_mean(logprobs - old_logprobs.detach(), mask).exp().expand(len(mask))
    return _loss_of(ratio, advantages, mask, clip)


def _log_band(logprobs, old_logprobs, advantages, mask, clip=0.2):
    log_ratio = _mean_log_ratio(logprobs, old_logprobs.detach(), mask)
    a, real = advantages.detach(), mask.bool().any(1)
    clipped = log_ratio.clamp(-clip, clip).exp()
    return -(torch.minimum(log_ratio.exp() * a, clipped * a) * real).mean()


def by_loop(logprobs, old_logprobs, advantages, mask, clip=0.2):
    total = logprobs.new_zeros(())
    for i, length in enumerate(mask.sum(1).int().tolist()):
        if length:
            difference = logprobs[i, :length] - old_logprobs[i, :length].detach()
            ratio, a = (difference.sum() / length).exp(), float(advantages[i])
            total = total - torch.min(a * ratio, a * ratio.clamp(1 - clip, 1 + clip))
    return total / len(mask)


def by_geometric_mean(logprobs, old_logprobs, advantages, mask, clip=0.2):
    """The geometric mean of the token ratios, in float64."""
    lengths = mask.sum(1).double().clamp(min=1)
    ratios = torch.where(mask.bool(), (logprobs - old_logprobs.detach()).double().exp(), 1.0)
    ratio, a = ratios.prod(1) ** (1 / lengths), advantages.detach().double()
    a = a * mask.bool().any(1)
    limited = torch.where(a > 0, ratio.clamp(max=1 + clip), ratio.clamp(min=1 - clip))
    return -(limited * a).mean().to(logprobs.dtype)


def token_form(logprobs, old_logprobs, advantages, mask, clip=0.2):
    """GSPO-token (equation 13 of the paper): the completion's ratio, each token's gradient."""
    whole = _mean_log_ratio(logprobs, old_logprobs, mask).detach().exp()[:, None]
    ratio, a = whole * (logprobs - logprobs.detach()).exp(), advantages.detach()[:, None]
    objective = torch.minimum(ratio * a, ratio.clamp(1 - clip, 1 + clip) * a)
    return -masked_mean(objective, mask, dim=1).mean()


EXERCISE = Exercise(
    reference=gspo_loss,
    lesson="07_beyond_grpo",
    section="One ratio for a completion",
    points=3,
    difficulty=3,
    minutes=12,
    differentiable=("logprobs",),
    constants=("old_logprobs", "advantages"),
    cases=_cases,
    mistakes=(
        Mistake(
            "the product of the token ratios, from a *sum* of log-ratios",
            _product,
            "GSPO takes the mean: otherwise a completion of 1000 tokens leaves any band at once.",
        ),
        Mistake(
            "the mean of the token ratios",
            _mean_of_ratios,
            "The mean is taken of the *log*-ratios, before exp: a geometric mean.",
        ),
        Mistake(
            "a ratio for each token",
            _token_ratios,
            "That is GRPO: here the whole completion has one ratio, and is clipped as a whole.",
        ),
        Mistake(
            "PPO's loss: a ratio for each token, and a mean over all tokens",
            _ppo,
            "The whole completion has one ratio here, and every completion counts once.",
        ),
        Mistake(
            "a mean over T positions, padding included",
            _over_padding,
            "Divide by the completion's own number of tokens: `masked_mean(…, dim=1)`.",
        ),
        Mistake(
            "a mean in which padding takes part",
            _with_padding,
            "What stands after the end was never said: only real tokens enter the mean.",
        ),
        Mistake(
            "an empty completion with ratio 1",
            _empty_counts,
            "exp of nothing is 1, and its advantage would enter the loss: an empty row counts as "
            "0.",
            telling=2,
        ),
        Mistake(
            "a ratio of 0/0 for an empty completion",
            _nan_if_empty,
            "One NaN spoils the batch: an empty row counts as 0.",
            telling=2,
        ),
        Mistake(
            "one ratio for the whole batch",
            _one_for_the_batch,
            "Every completion has a ratio of its own: the mean runs along dim 1.",
        ),
        Mistake(
            "a band for the log-ratio",
            _log_band,
            "The ratio itself is clipped; log(1 + ε) is not ε.",
        ),
        Mistake(
            "an ε of 0.2 whatever the argument says",
            _variant(band=lambda clip: 0.2),
            "Use the argument `clip`, not its default.",
            telling=2,
        ),
        Mistake(
            "a sum over completions",
            _variant(average=lambda rows, mask: rows.sum()),
            "As a sum, twice the batch would mean twice the step: take the mean.",
        ),
        Mistake(
            "a mean that weighs completions by their length",
            _variant(average=lambda rows, m: (rows * m.sum(1)).sum() / m.sum().clamp(min=1)),
            "Every completion counts once, whatever its length.",
        ),
        Mistake(
            "a mean over the completions that are not empty",
            _variant(average=lambda rows, m: rows.sum() / m.bool().any(1).sum().clamp(min=1)),
            "An empty completion adds 0 and is counted all the same.",
            telling=1,
        ),
        *of_the_clip(_variant),
    ),
    alternatives=(by_loop, by_geometric_mean, token_form),
    hints=(
        "The rest is PPO's clip, on N ratios in place of N·T. How does a completion get one ratio?",
        "`masked_mean` of the log-ratios along dim 1, then exp. An empty completion must end up "
        "as 0, not as 1 · A.",
        "Everything has the shape (N,) from here on:\n\n"
        "    mean_log_ratio = masked_mean(logprobs - old_logprobs.detach(), mask, dim=1)\n"
        "    ratio = mean_log_ratio.exp()\n"
        "    advantages = advantages.detach() * mask.bool().any(dim=1)\n"
        "    return -torch.minimum(..., ...).mean()",
    ),
)
