"""GSPO's loss: one ratio for a whole completion."""

from collections.abc import Iterator
from functools import partial

import torch

from rlcourse.algorithms.beyond_grpo import gspo_loss
from rlcourse.algorithms.policies import masked_mean
from rlcourse.checks.calling import Case
from rlcourse.checks.cases import CaseSampler, tensor
from rlcourse.checks.exercise import Exercise, Mistake
from rlcourse.checks.sketch import Sketch
from rlcourse.exercises.ppo.clipped_loss_mistakes import (
    batches,
    case_of,
    of_the_clip,
    one_token,
    other_bands,
)


def _cases(draw: CaseSampler) -> Iterator[Case]:
    yield from batches(draw)
    for ratio, advantage in ((1.5, 1.0), (1.5, -1.0), (0.556, -1.0)):
        yield one_token(f"worked: ratio {ratio}, advantage {advantage:+.0f}", ratio, advantage)
    yield from other_bands()
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


def _mean_log_ratio(logprobs, old_logprobs, mask):
    return masked_mean(logprobs - old_logprobs, mask, dim=1)


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


def line_by_line(logprobs, old_logprobs, advantages, mask, clip=0.2):
    old = old_logprobs.detach()
    log_ratio = ((logprobs - old) * mask).sum(1) / mask.sum(1).clamp(min=1)
    ratio = log_ratio.exp()
    clipped = ratio.clamp(1 - clip, 1 + clip)
    a = advantages.detach()
    objective = torch.minimum(ratio * a, clipped * a)
    rows = objective * mask.bool().any(1)
    return -rows.mean()


_sketch = Sketch(line_by_line, masked_mean)
_edit = _sketch.edit
_LOG_RATIO = "((logprobs - old) * mask).sum(1) / mask.sum(1).clamp(min=1)"
_over_completions = partial(_edit, "the average over completions", "rows.mean()")


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
            _edit("the ratio: one for a completion", " / mask.sum(1).clamp(min=1)", ""),
            "GSPO takes the mean: otherwise a completion of 1000 tokens leaves any band at once.",
        ),
        Mistake(
            "the mean of the token ratios",
            _edit(
                "the ratio: one for a completion",
                _LOG_RATIO,
                "masked_mean((logprobs - old).exp(), mask, dim=1)",
                "log_ratio.exp()",
                "log_ratio",
            ),
            "The mean is taken of the *log*-ratios, before exp: a geometric mean.",
        ),
        Mistake(
            "a ratio for each token",
            _edit(
                "the ratio: one for a completion",
                _LOG_RATIO,
                "logprobs - old",
                "a = advantages.detach()",
                "a = advantages.detach()[:, None]",
                "objective * mask.bool().any(1)",
                "masked_mean(objective, mask, dim=1)",
            ),
            "That is GRPO: here the whole completion has one ratio, and is clipped as a whole.",
        ),
        Mistake(
            "PPO's loss: a ratio for each token, and a mean over all tokens",
            _edit(
                "the ratio: one for a completion",
                _LOG_RATIO,
                "logprobs - old",
                "a = advantages.detach()",
                "a = advantages.detach()[:, None]",
                "objective * mask.bool().any(1)",
                "masked_mean(objective, mask)",
            ),
            "The whole completion has one ratio here, and every completion counts once.",
        ),
        Mistake(
            "a mean over T positions, padding included",
            _edit(
                "the ratio: one for a completion", "sum(1) / mask.sum(1).clamp(min=1)", "mean(1)"
            ),
            "Divide by the completion's own number of tokens: `masked_mean(…, dim=1)`.",
        ),
        Mistake(
            "a mean in which padding takes part",
            _edit("the ratio: one for a completion", _LOG_RATIO, "(logprobs - old).mean(1)"),
            "What stands after the end was never said: only real tokens enter the mean.",
        ),
        Mistake(
            "an empty completion with ratio 1",
            _edit("empty completions", "objective * mask.bool().any(1)", "objective"),
            "exp of nothing is 1, and its advantage would enter the loss: an empty row counts as "
            "0.",
            telling=2,
        ),
        Mistake(
            "a ratio of 0/0 for an empty completion",
            _edit(
                "empty completions",
                ".clamp(min=1)",
                "",
                "objective * mask.bool().any(1)",
                "objective",
            ),
            "One NaN spoils the batch: an empty row counts as 0.",
            telling=2,
        ),
        Mistake(
            "one ratio for the whole batch",
            _edit(
                "the ratio: one for a completion",
                _LOG_RATIO,
                "masked_mean(logprobs - old, mask).expand(len(mask))",
            ),
            "Every completion has a ratio of its own: the mean runs along dim 1.",
        ),
        Mistake(
            "a band for the log-ratio",
            _edit(
                "the clip: its band",
                "ratio.clamp(1 - clip, 1 + clip)",
                "log_ratio.clamp(-clip, clip).exp()",
            ),
            "The ratio itself is clipped; log(1 + ε) is not ε.",
        ),
        Mistake(
            "an ε of 0.2 whatever the argument says",
            _edit("the clip: its band", "1 - clip, 1 + clip", "0.8, 1.2"),
            "Use the argument `clip`, not its default.",
            telling=2,
        ),
        Mistake(
            "a sum over completions",
            _over_completions("rows.sum()"),
            "As a sum, twice the batch would mean twice the step: take the mean.",
        ),
        Mistake(
            "a mean that weighs completions by their length",
            _over_completions("(rows * mask.sum(1)).sum() / mask.sum().clamp(min=1)"),
            "Every completion counts once, whatever its length.",
        ),
        Mistake(
            "a mean over the completions that are not empty",
            _over_completions("rows.sum() / mask.bool().any(1).sum().clamp(min=1)"),
            "An empty completion adds 0 and is counted all the same.",
            telling=1,
        ),
        *of_the_clip(_sketch),
    ),
    alternatives=(by_loop, by_geometric_mean, token_form, line_by_line),
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
