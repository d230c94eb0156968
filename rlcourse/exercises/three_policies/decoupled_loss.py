"""PPO's clip where sampler, old policy and trainer are three."""

from collections.abc import Iterator
from functools import partial

import torch
from torch import Tensor

from rlcourse.algorithms.policies import masked_mean
from rlcourse.algorithms.three_policies import decoupled_loss
from rlcourse.checks.calling import Case
from rlcourse.checks.cases import CaseSampler, tensor
from rlcourse.checks.exercise import Exercise, Mistake
from rlcourse.checks.sketch import Sketch
from rlcourse.exercises.ppo.clipped_loss_mistakes import columns, of_the_clip
from rlcourse.exercises.three_policies.batches import batches, mean, near, weight


def _cases(draw: CaseSampler) -> Iterator[Case]:
    def case(label: str, logprobs: Tensor, mask: Tensor, **given) -> Case:
        old = near(draw, logprobs, 0.4)
        arguments = {
            "logprobs": logprobs,
            "old_logprobs": old,
            "sampler_logprobs": near(draw, old, 0.7),
            "advantages": draw.rewards(len(logprobs), logprobs.dtype),
            "mask": mask,
        }
        return Case(label, arguments | given)

    for label, logprobs, mask in batches(draw):
        yield case(label, logprobs, mask)
    old, one = tensor([[-2.0]]), torch.ones(1, 1) > 0
    worked = (1.5, 1.0, 0.5), (0.5, -1.0, 1.5), (20.0, -1.0, 4.0), (5.0, 1.0, 0.5)
    for ratio, advantage, weighs in worked:
        yield case(
            f"worked: ratio {ratio:g}, advantage {advantage:+.0f}, weight {weighs:g}",
            old + tensor([[ratio]]).log(),
            one,
            old_logprobs=old,
            sampler_logprobs=old - tensor([[weighs]]).log(),
            advantages=tensor([advantage]),
        )
    rows, tokens = draw.shape()
    logprobs, mask = draw.logprobs(rows, tokens), draw.mask(rows, tokens)
    for label, given in (
        ("a cap of 1", {"cap": 1.0}),
        ("a cap of 1.2", {"cap": 1.2}),
        ("a cap of 1.2 and a narrow band", {"cap": 1.2, "clip": 0.05}),
        ("a high cap", {"cap": 50.0}),
        ("a narrow band", {"clip": 0.05}),
        ("a wide band", {"clip": 0.6}),
    ):
        yield case(label, draw.logprobs(rows, tokens), draw.mask(rows, tokens), **given)
    old = near(draw, logprobs, 0.4)
    yield case("the sampler is the old policy", logprobs, mask, old_logprobs=old,
               sampler_logprobs=old.clone())  # fmt: skip
    yield case("the first update", logprobs, mask, old_logprobs=logprobs.clone())
    logprobs, mask = draw.logprobs(6, 9), draw.mask(6, 9)
    per_token = draw.rewards(54).reshape(6, 9)
    yield case("an advantage for every token", logprobs, mask, advantages=per_token)


def _clipped(ratio, advantages, clip):
    a = columns(advantages).detach()
    return torch.minimum(ratio * a, ratio.clamp(1 - clip, 1 + clip) * a)


def _ratio(new, old, mask):
    return torch.where(mask.bool(), new - old.detach(), 0).exp()


def by_loop(logprobs, old_logprobs, sampler_logprobs, advantages, mask, clip=0.2, cap=2.0):
    terms = []
    for i, t in mask.bool().nonzero().tolist():
        a = float(advantages[i] if advantages.dim() == 1 else advantages[i, t])
        old = old_logprobs[i, t].detach()
        w = float((old - sampler_logprobs[i, t].detach()).exp().clamp(max=cap))
        ratio = (logprobs[i, t] - old).exp()
        terms.append(-w * torch.min(a * ratio, a * ratio.clamp(1 - clip, 1 + clip)))
    return torch.stack(terms).mean() if terms else (0 * logprobs).sum()


def by_weighed_advantages(
    logprobs, old_logprobs, sampler_logprobs, advantages, mask, clip=0.2, cap=2.0
):
    """The weight can as well multiply the advantage, since it is never negative."""
    weighed = columns(advantages).detach() * weight(old_logprobs, sampler_logprobs, mask, cap)
    return -mean(_clipped(_ratio(logprobs, old_logprobs, mask), weighed, clip), mask)


def line_by_line(
    logprobs, old_logprobs, sampler_logprobs, advantages, mask, clip=0.2, cap=2.0
):  # fmt: skip
    a = advantages.detach()
    if a.dim() == 1:
        a = a[:, None]
    kept = mask.bool()
    w = (old_logprobs - sampler_logprobs).masked_fill(~kept, 0).exp()
    weights = w.clamp(max=cap).detach()
    old = old_logprobs.detach()
    ratio = (logprobs - old).masked_fill(~kept, 0).exp()
    clipped = ratio.clamp(1 - clip, 1 + clip)
    objective = torch.minimum(ratio * a, clipped * a)
    average = masked_mean(weights * objective, mask)
    return -average


_sketch = Sketch(line_by_line)
_edit = _sketch.edit
_RATIO, _MIN = (
    "(logprobs - old).masked_fill(~kept, 0).exp()",
    "torch.minimum(ratio * a, clipped * a)",
)
_AVERAGE = "masked_mean(weights * objective, mask)"
_made_of = partial(_edit, "the weights: what they are made of", "(old_logprobs - sampler_logprobs)")


EXERCISE = Exercise(
    reference=decoupled_loss,
    lesson="12_three_policies",
    section="Three policies in one loss",
    points=4,
    difficulty=3,
    minutes=12,
    differentiable=("logprobs",),
    constants=("old_logprobs", "sampler_logprobs", "advantages"),
    cases=_cases,
    mistakes=(
        Mistake(
            "the clip alone, without the weights",
            _edit("the weights: what they are made of", "weights * objective", "objective"),
            "The clip knows nothing of the sampler: each token must also be weighed by "
            "π_old/π_sampler.",
        ),
        Mistake(
            "weights of the present policy against the sampler",
            _made_of("(logprobs - sampler_logprobs)"),
            "The ratio has already counted the way from π_old to πθ: the weight is that of π_old.",
        ),
        Mistake(
            "weights of the sampler against the old policy",
            _made_of("(sampler_logprobs - old_logprobs)"),
            "Whoever drew the token stands below: π_old/π_sampler.",
        ),
        Mistake(
            "a ratio against the sampler",
            _edit("the ratio", "(logprobs - old)", "(logprobs - sampler_logprobs.detach())"),
            "The clip is to bound what *this* step moves: its ratio is πθ/π_old.",
        ),
        Mistake(
            "a ratio against the sampler, and no weights",
            _edit(
                "the ratio",
                "(logprobs - old)",
                "(logprobs - sampler_logprobs.detach())",
                "weights * objective",
                "objective",
            ),
            "Then the clip punishes the step for what the sampler did: take πθ/π_old, and weigh.",
        ),
        Mistake(
            "a weight inside of the clip",
            _edit(
                "the weights: their place",
                _RATIO,
                "weights * (logprobs - old).masked_fill(~kept, 0).exp()",
                "weights * objective",
                "objective",
            ),
            "The clip bounds the ratio; the weight multiplies what comes out of the min.",
        ),
        Mistake(
            "weights without the cap",
            _edit("the weights: their cap", "w.clamp(max=cap)", "w"),
            "One token that the sampler found nearly impossible would outweigh the batch.",
        ),
        Mistake(
            "clip and cap at their defaults, whatever the arguments say",
            _edit("the weights: their cap", "max=cap", "max=2.0", "1 - clip, 1 + clip", "0.8, 1.2"),
            "Use the arguments, not their defaults.",
        ),
        Mistake(
            "a cap of 2, whatever the argument says",
            _edit("the weights: their cap", "max=cap", "max=2.0"),
            "Hand `cap` on to `truncated_weights`.",
        ),
        Mistake(
            "masked weights in place of truncated ones",
            _edit("the weights: their cap", "w.clamp(max=cap)", "(w * (w <= cap))"),
            'Here a token above the cap counts for the cap: mode "truncate".',
        ),
        Mistake(
            "a mean divided by the sum of the weights",
            _edit(
                "the average",
                _AVERAGE,
                "(weights * objective * mask).sum() / (weights * mask).sum().clamp(min=1e-9)",
            ),
            "The weights are 1 on average already: divide by the number of real tokens.",
        ),
        Mistake(
            "a loss without the clip",
            _edit("the clip", _MIN, "ratio * a"),
            "Weights say what a token counts for; only the clip says how far it may move.",
        ),
        Mistake(
            "GRPO's average: the mean of each completion, then of these",
            _edit("the average", _AVERAGE, "masked_mean(weights * objective, mask, dim=1).mean()"),
            "All real tokens of the batch alike: `masked_mean` without `dim`.",
        ),
        Mistake(
            "a mean over all N·T positions, padding included",
            _edit("the average", _AVERAGE, "(weights * objective * mask).mean()"),
            "Divide by the number of real tokens.",
        ),
        Mistake(
            "a loss through which gradient flows into the weights",
            _edit("the weights: constants", "w.clamp(max=cap).detach()", "w.clamp(max=cap)"),
            "Sampler and old policy are facts of the past: detach the weights.",
        ),
        *of_the_clip(_sketch, "a loss without the clip"),
    ),
    alternatives=(by_loop, by_weighed_advantages, line_by_line),
    hints=(
        "Two questions, two ratios. How far has *this* step moved a token? How much likelier is "
        "it for the trainer than it was for the sampler?",
        "The clipped objective is that of lesson 07, with πθ/π_old. Multiply it, token by token, "
        "with your `truncated_weights` of π_old against the sampler, then average.",
        "With the reference's steps:\n\n"
        "    weights = truncated_weights(old_logprobs, ..., mask, cap)\n"
        "    ratio = importance_weights(logprobs, ..., mask)\n"
        "    advantages = advantages.detach()\n"
        "    if advantages.dim() == 1:\n"
        "        advantages = advantages[:, None]\n"
        "    clipped = ratio.clamp(1 - clip, 1 + clip)\n"
        "    objective = torch.minimum(ratio * advantages, clipped * advantages)\n"
        "    return -masked_mean(..., mask)",
    ),
)
