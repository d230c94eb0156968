"""What a token counts for that another policy has written."""

from collections.abc import Iterator
from dataclasses import replace

import torch
from torch import Tensor

from rlcourse.algorithms.three_policies import truncated_weights
from rlcourse.checks.calling import Case
from rlcourse.checks.cases import CaseSampler, tensor
from rlcourse.checks.exercise import Exercise, Mistake
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


def _variant(
    ratio=lambda trainer, sampler: (trainer - sampler).exp(),
    truncate=lambda w, cap: w.clamp(max=cap),
    mask_out=lambda w, cap: torch.where(w > cap, 0, w),
    modes=("truncate", "mask"),
    detached=True,
    padded=True,
):
    """`truncated_weights` with one of its parts replaced."""

    def weights(trainer_logprobs, sampler_logprobs, mask, cap=2.0, mode="truncate"):
        if mode not in ("truncate", "mask"):
            raise ValueError(mode)
        trainer = trainer_logprobs.detach() if detached else trainer_logprobs
        sampler = sampler_logprobs.detach()
        if padded:
            trainer, sampler = (x.masked_fill(~mask.bool(), 0) for x in (trainer, sampler))
        w = ratio(trainer, sampler)
        w = truncate(w, cap) if mode == modes[0] else mask_out(w, cap)
        return w.masked_fill(~mask.bool(), 0) if padded else w

    return weights


def _any_mode(trainer_logprobs, sampler_logprobs, mask, cap=2.0, mode="truncate"):
    known = mode if mode in ("truncate", "mask") else "truncate"
    return truncated_weights(trainer_logprobs, sampler_logprobs, mask, cap, known)


def _whole_rows(trainer_logprobs, sampler_logprobs, mask, cap=2.0, mode="truncate"):
    w = truncated_weights(trainer_logprobs, sampler_logprobs, mask, torch.inf, mode)
    if mode == "truncate":
        return w.clamp(max=cap)
    return w * (w <= cap).all(1, keepdim=True)


def _sequences(trainer_logprobs, sampler_logprobs, mask, cap=2.0, mode="truncate"):
    sums = [
        x.detach().masked_fill(~mask.bool(), 0).sum(1, keepdim=True)
        for x in (trainer_logprobs, sampler_logprobs)
    ]
    everywhere = [s.expand(mask.shape) for s in sums]
    return truncated_weights(*everywhere, mask, cap, mode)


def _one_on_padding(trainer_logprobs, sampler_logprobs, mask, cap=2.0, mode="truncate"):
    w = truncated_weights(trainer_logprobs, sampler_logprobs, mask, cap, mode)
    return w.masked_fill(~mask.bool(), 1)


def _nan_on_padding(trainer_logprobs, sampler_logprobs, mask, cap=2.0, mode="truncate"):
    if mode not in ("truncate", "mask"):
        raise ValueError(mode)
    w = (trainer_logprobs - sampler_logprobs).detach().exp()
    w = w * (w <= cap) if mode == "mask" else w
    w = w * mask.to(w.dtype)
    return w if mode == "mask" else w.clamp(max=cap)


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
            _variant(ratio=lambda trainer, sampler: (sampler - trainer).exp()),
            "Whoever drew the token stands below: π_trainer/π_sampler.",
        ),
        Mistake(
            "a difference of probabilities",
            _variant(ratio=lambda trainer, sampler: trainer.exp() - sampler.exp()),
            "How much *likelier* is a ratio of probabilities, exp of a difference of logs.",
        ),
        Mistake(
            "a log-ratio, not a ratio",
            _variant(ratio=lambda trainer, sampler: trainer - sampler),
            "The weight is exp of that difference.",
        ),
        Mistake(
            "a band around 1, cut from below as well",
            _variant(truncate=lambda w, cap: w.clamp(1 / cap, cap)),
            "Small weights harm nobody: only large ones make an average noisy. There is one bound.",
        ),
        Mistake(
            "PPO's band around 1",
            _variant(truncate=lambda w, cap: w.clamp(2 - cap, cap)),
            "This is no trust region. A token that the trainer would hardly write counts for "
            "little, and that is right.",
        ),
        Mistake(
            "a bound from below",
            _variant(truncate=lambda w, cap: w.clamp(min=cap)),
            "The cap is the most that a weight can be: `clamp(max=cap)`.",
        ),
        Mistake(
            "a cap for the log-ratio",
            _variant(
                ratio=lambda t, s: t - s,
                truncate=lambda w, cap: w.clamp(max=cap).exp(),
                mask_out=lambda w, cap: torch.where(w > cap, 0, w.exp()),
            ),
            "The cap bounds the weight itself: exp first, then the bound.",
        ),
        Mistake(
            "a cap of 2, whatever the argument says",
            _variant(
                truncate=lambda w, cap: w.clamp(max=2),
                mask_out=lambda w, cap: torch.where(w > 2, 0, w),
            ),
            "Use the argument, not its default.",
        ),
        Mistake(
            "weights without a bound",
            _variant(truncate=lambda w, cap: w, mask_out=lambda w, cap: w),
            "One token may then weigh as much as all others together (lesson 04).",
        ),
        Mistake(
            "a weight of 1 in place of what is masked",
            _variant(mask_out=lambda w, cap: torch.where(w > cap, 1, w)),
            "Masked means left out: such a token weighs 0.",
        ),
        Mistake(
            "a mask that keeps what it should leave out",
            _variant(mask_out=lambda w, cap: torch.where(w > cap, w, 0)),
            "What lies above the cap is what cannot be trusted.",
        ),
        Mistake(
            "the two modes exchanged",
            _variant(modes=("mask", "truncate")),
            '"truncate" keeps the token at the cap, "mask" leaves it out.',
        ),
        Mistake(
            "truncation in both modes",
            _variant(mask_out=lambda w, cap: w.clamp(max=cap)),
            'In mode "mask" a token above the cap weighs 0.',
        ),
        Mistake(
            "masking in both modes",
            _variant(truncate=lambda w, cap: torch.where(w > cap, 0, w)),
            'In mode "truncate" a token above the cap weighs the cap.',
        ),
        Mistake(
            "whole completions left out for one of their tokens",
            _whole_rows,
            "Each token stands for itself here; a rule for whole completions is another method.",
        ),
        Mistake(
            "one weight for a whole completion",
            _sequences,
            "The product over 300 tokens is 0 or enormous: weights go token by token here.",
        ),
        Mistake(
            "weights that a gradient flows through",
            _variant(detached=False),
            "A weight says what a token counts for; it is no part of what is learned. Detach it.",
        ),
        Mistake(
            "padding of weight 1",
            _one_on_padding,
            "exp of a masked 0 is 1: set padding to 0 after the exponential.",
        ),
        Mistake(
            "weights on the padding too",
            _variant(padded=False),
            "What stands after the end was never said: where the mask is 0 the weight is 0.",
        ),
        Mistake(
            "an overflow on padding, times 0",
            _nan_on_padding,
            "exp of +200 is infinite in float32, and inf · 0 is NaN: mask the log-ratio first.",
            telling=1,
        ),
        Mistake(
            "weights in a mode that does not exist",
            _any_mode,
            "A misspelled mode that passes silently trains something else: raise ValueError.",
            telling=1,
        ),
    ),
    alternatives=(by_loop, by_where),
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
