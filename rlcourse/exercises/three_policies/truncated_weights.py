"""What a token counts for that another policy has written."""

from collections.abc import Iterator
from dataclasses import replace
from functools import partial

import torch
from torch import Tensor

from rlcourse.algorithms.three_policies import truncated_weights
from rlcourse.checks.calling import Case
from rlcourse.checks.cases import CaseSampler, tensor
from rlcourse.checks.exercise import Exercise, Mistake
from rlcourse.checks.sketch import Sketch
from rlcourse.exercises.three_policies.batches import batches, near


def _cases(draw: CaseSampler) -> Iterator[Case]:
    def case(label: str, trainer: Tensor, sampler: Tensor, mask: Tensor, **given) -> Case:
        arguments = {"trainer_logprobs": trainer, "sampler_logprobs": sampler, "mask": mask}
        return Case(label, arguments | given)

    trainer, sampler = tensor([[0.6, 0.3, 0.1]]).log(), tensor([[0.1, 0.3, 0.6]]).log()
    full = torch.ones(1, 3) > 0
    for mode in ("truncate", "mask"):
        yield case(f"worked: weights 6, 1 and 1/6, {mode}", trainer, sampler, full, mode=mode)
    for label, logprobs, mask in batches(draw):
        sampled = near(draw, logprobs, 1.0)
        for mode in ("truncate", "mask"):
            yield case(f"{label}, {mode}", logprobs, sampled, mask, cap=1.5, mode=mode)
    rows, tokens = draw.shape()
    logprobs, mask = draw.logprobs(rows, tokens), draw.mask(rows, tokens)
    yield case("neither cap nor mode given", logprobs, near(draw, logprobs, 1.5), mask)
    yield case("the same policy", logprobs, logprobs.clone(), mask, mode="mask", cap=1.0)
    wide = 3 * draw.normal(4, 5)
    for cap in (1.0, 8.0):
        for mode in ("truncate", "mask"):
            old = draw.logprobs(4, 5)
            label = f"far apart, cap {cap:g}, {mode}"
            yield case(label, old + wide, old, torch.ones(4, 5) > 0, cap=cap, mode=mode)
    mask = draw.mask(2, 3)
    rare = draw.logprobs(2, 3).masked_fill(~mask, -200).float()
    for mode in ("truncate", "mask"):
        label = f"padding of log-prob −200, float32, {mode}"
        yield case(label, draw.logprobs(2, 3).float(), rare, mask, mode=mode)
    unknown = case("a mode that does not exist", trainer, sampler, full, mode="clip")
    yield replace(unknown, raises=True)


def by_loop(trainer_logprobs, sampler_logprobs, mask, cap=2.0, mode="truncate"):
    if mode not in ("truncate", "mask"):
        raise ValueError(f"no such mode: {mode}")
    weights = torch.zeros_like(trainer_logprobs)
    for i, t in mask.bool().nonzero().tolist():
        ratio = (trainer_logprobs[i, t].detach() - sampler_logprobs[i, t].detach()).exp()
        if ratio <= cap:
            weights[i, t] = ratio
        elif mode == "truncate":
            weights[i, t] = cap
    return weights


def by_where(trainer_logprobs, sampler_logprobs, mask, cap=2.0, mode="truncate"):
    above = {"truncate": cap, "mask": 0.0}
    if mode not in above:
        raise ValueError(mode)
    with torch.no_grad():
        log_ratio = torch.where(mask > 0, trainer_logprobs - sampler_logprobs, -torch.inf)
        ratio = log_ratio.exp()
        return torch.where(ratio > cap, above[mode], ratio)


def line_by_line(trainer_logprobs, sampler_logprobs, mask, cap=2.0, mode="truncate"):
    if mode not in ("truncate", "mask"):
        raise ValueError(mode)
    kept = mask.bool()
    log_ratio = (trainer_logprobs.detach() - sampler_logprobs.detach()).masked_fill(~kept, 0)
    w = log_ratio.exp()
    truncated = w.clamp(max=cap)
    masked = torch.where(w > cap, 0, w)
    w = truncated if mode == "truncate" else masked
    return w.masked_fill(~kept, 0)


_edit = Sketch(line_by_line).edit
_ratio = partial(_edit, "the ratio", "log_ratio.exp()")
_above = partial(_edit, "what lies above the cap", "torch.where(w > cap, 0, w)")


EXERCISE = Exercise(
    reference=truncated_weights,
    lesson="12_three_policies",
    section="Weights with an upper bound",
    points=3,
    difficulty=2,
    minutes=10,
    constants=("trainer_logprobs", "sampler_logprobs"),
    cases=_cases,
    mistakes=(
        Mistake(
            "the sampler over the trainer",
            _ratio("(-log_ratio).exp()"),
            "Whoever drew the token stands below: π_trainer/π_sampler.",
        ),
        Mistake(
            "a difference of probabilities",
            _ratio("trainer_logprobs.detach().exp() - sampler_logprobs.detach().exp()"),
            "How much *likelier* is a ratio of probabilities, exp of a difference of logs.",
        ),
        Mistake(
            "a log-ratio, not a ratio",
            _ratio("log_ratio"),
            "The weight is exp of that difference.",
        ),
        Mistake(
            "a band around 1, cut from below as well",
            _edit("the cap", "w.clamp(max=cap)", "w.clamp(1 / cap, cap)"),
            "Small weights harm nobody: only large ones make an average noisy. There is one bound.",
        ),
        Mistake(
            "PPO's band around 1",
            _edit("the cap", "w.clamp(max=cap)", "w.clamp(2 - cap, cap)"),
            "This is no trust region. A token that the trainer would hardly write counts for "
            "little, and that is right.",
        ),
        Mistake(
            "a bound from below",
            _edit("the cap", "w.clamp(max=cap)", "w.clamp(min=cap)"),
            "The cap is the most that a weight can be: `clamp(max=cap)`.",
        ),
        Mistake(
            "a cap for the log-ratio",
            _edit(
                "the cap",
                "log_ratio.exp()",
                "log_ratio",
                "w.clamp(max=cap)",
                "w.clamp(max=cap).exp()",
                "torch.where(w > cap, 0, w)",
                "torch.where(w > cap, 0, w.exp())",
            ),
            "The cap bounds the weight itself: exp first, then the bound.",
        ),
        Mistake(
            "a cap of 2, whatever the argument says",
            _edit("the cap", "max=cap", "max=2", "w > cap", "w > 2"),
            "Use the argument, not its default.",
        ),
        Mistake(
            "weights without a bound",
            _edit("the cap", "w.clamp(max=cap)", "w", "torch.where(w > cap, 0, w)", "w"),
            "One token may then weigh as much as all others together (lesson 04).",
        ),
        Mistake(
            "a weight of 1 in place of what is masked",
            _above("torch.where(w > cap, 1, w)"),
            "Masked means left out: such a token weighs 0.",
        ),
        Mistake(
            "a mask that keeps what it should leave out",
            _above("torch.where(w > cap, w, 0)"),
            "What lies above the cap is what cannot be trusted.",
        ),
        Mistake(
            "the two modes exchanged",
            _edit("the modes", 'mode == "truncate"', 'mode == "mask"'),
            '"truncate" keeps the token at the cap, "mask" leaves it out.',
        ),
        Mistake(
            "truncation in both modes",
            _edit("the modes", 'mode == "truncate"', "True"),
            'In mode "mask" a token above the cap weighs 0.',
        ),
        Mistake(
            "masking in both modes",
            _edit("the modes", 'mode == "truncate"', "False"),
            'In mode "truncate" a token above the cap weighs the cap.',
        ),
        Mistake(
            "whole completions left out for one of their tokens",
            _above("w * (w <= cap).all(1, keepdim=True)"),
            "Each token stands for itself here; a rule for whole completions is another method.",
        ),
        Mistake(
            "one weight for a whole completion",
            _ratio("log_ratio.sum(1, keepdim=True).expand_as(log_ratio).exp()"),
            "The product over 300 tokens is 0 or enormous: weights go token by token here.",
        ),
        Mistake(
            "weights that a gradient flows through",
            _edit("the constant", "trainer_logprobs.detach()", "trainer_logprobs"),
            "A weight says what a token counts for; it is no part of what is learned. Detach it.",
        ),
        Mistake(
            "padding of weight 1",
            _edit("the padding", "w.masked_fill(~kept, 0)", "w.masked_fill(~kept, 1)"),
            "exp of a masked 0 is 1: set padding to 0 after the exponential.",
        ),
        Mistake(
            "weights on the padding too",
            _edit(
                "the padding",
                "sampler_logprobs.detach()).masked_fill(~kept, 0)",
                "sampler_logprobs.detach())",
                "w.masked_fill(~kept, 0)",
                "w",
            ),
            "What stands after the end was never said: where the mask is 0 the weight is 0.",
        ),
        Mistake(
            "an overflow on padding, times 0",
            _edit(
                "the padding",
                "sampler_logprobs.detach()).masked_fill(~kept, 0)",
                "sampler_logprobs.detach())",
                "w.clamp(max=cap)",
                "(w * mask).clamp(max=cap)",
                "torch.where(w > cap, 0, w)",
                "w * (w <= cap)",
                "w.masked_fill(~kept, 0)",
                "w * mask",
            ),
            "exp of +200 is infinite in float32, and inf · 0 is NaN: mask the log-ratio first.",
            telling=1,
        ),
        Mistake(
            "weights in a mode that does not exist",
            _edit("another mode", "raise ValueError(mode)", "pass"),
            "A misspelled mode that passes silently trains something else: raise ValueError.",
            telling=1,
        ),
    ),
    alternatives=(by_loop, by_where, line_by_line),
    hints=(
        "You wrote most of it in lesson 04: `importance_weights`, of the trainer against the "
        "sampler. What is new happens above the cap.",
        'Detach the weights. Then `clamp(max=cap)` for "truncate", and 0 wherever they are above '
        'the cap for "mask".',
        "With the reference's steps:\n\n"
        '    if mode not in ("truncate", "mask"):\n'
        '        raise ValueError("...")\n'
        "    weights = importance_weights(..., ..., mask).detach()\n"
        '    if mode == "mask":\n'
        "        return weights.masked_fill(weights > cap, ...)\n"
        "    return weights.clamp(max=...)",
    ),
)
