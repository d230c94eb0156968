"""Sampler against trainer: what is left should be rounding."""

from collections.abc import Iterator

import torch

from rlcourse.algorithms.debugging import probe_gap
from rlcourse.checks.calling import Case
from rlcourse.checks.cases import CaseSampler, tensor
from rlcourse.checks.exercise import Exercise, Mistake


def _cases(draw: CaseSampler) -> Iterator[Case]:
    worked = {
        "logprobs": tensor([[-0.5, -1.0, -2.0], [-0.25, -0.75, 0.0]]),
        "old_logprobs": tensor([[-0.5, -1.5, -1.0], [-0.25, -0.5, 0.0]]),
        "mask": torch.tensor([[1, 1, 1], [1, 1, 0]]).bool(),
    }
    yield Case("worked: three tokens of five differ", worked)
    for label, logprobs, mask in draw.batches():
        old = logprobs + draw.normal(*logprobs.shape, scale=0.3).to(logprobs)
        yield Case(label, {"logprobs": logprobs, "old_logprobs": old, "mask": mask})
    logprobs, mask = draw.logprobs(3, 5), draw.mask(3, 5)
    off = torch.where(mask, logprobs, logprobs - 4)
    yield Case("a gap on padding alone", {"logprobs": logprobs, "old_logprobs": off, "mask": mask})
    once = logprobs.clone()
    once[0, 0] -= 2.5
    yield Case("one token alone", {"logprobs": logprobs, "old_logprobs": once, "mask": mask})
    above = logprobs + 0.125
    yield Case(
        "the sampler is surer everywhere",
        {"logprobs": logprobs, "old_logprobs": above, "mask": mask},
    )


def _of(distance, mean=None, largest=None):
    """The probe with another distance, another mean, or another maximum."""

    def probe(logprobs, old_logprobs, mask):
        gap = distance(logprobs, old_logprobs)
        real = gap.masked_fill(~mask.bool(), 0)
        usual = real.sum() / mask.sum().clamp(min=1)
        return (
            mean(gap, real, mask) if mean else usual,
            largest(gap, real, mask) if largest else real.max(),
        )

    return probe


def _absolute(logprobs, old_logprobs):
    return (logprobs - old_logprobs).abs()


def _by_loop(logprobs, old_logprobs, mask):
    found = [
        abs(new - old)
        for new, old, real in zip(
            logprobs.flatten(), old_logprobs.flatten(), mask.flatten(), strict=True
        )
        if real
    ]
    gaps = torch.stack(found) if found else logprobs.new_zeros(1)
    return gaps.mean(), gaps.max()


def _by_product(logprobs, old_logprobs, mask):
    gap = (old_logprobs - logprobs).abs() * mask
    return gap.sum() / torch.clamp(mask.sum(), min=1), gap.amax()


EXERCISE = Exercise(
    reference=probe_gap,
    lesson="10_debugging",
    section="The gap",
    points=2,
    difficulty=1,
    minutes=8,
    cases=_cases,
    mistakes=(
        Mistake(
            "a gap with its sign",
            _of(lambda new, old: new - old),
            "Where the trainer is surer and where the sampler is, the differences cancel: a mean "
            "near 0 then says nothing.",
        ),
        Mistake(
            "an absolute value that is taken after the mean",
            _of(
                lambda new, old: new - old,
                lambda gap, real, mask: (real.sum() / mask.sum().clamp(min=1)).abs(),
                lambda gap, real, mask: real.abs().max(),
            ),
            "Take it of each token first: where the trainer is surer and where the sampler is, the "
            "differences cancel in the mean.",
        ),
        Mistake(
            "a mean and a maximum over the padding too",
            _of(_absolute, lambda gap, real, mask: gap.mean(), lambda gap, real, mask: gap.max()),
            "Padding was never sampled, and what stands there is arbitrary: count real tokens.",
        ),
        Mistake(
            "a maximum over the padding too",
            _of(_absolute, largest=lambda gap, real, mask: gap.max()),
            "The mean leaves the padding out, and so must the maximum.",
        ),
        Mistake(
            "a gap divided by all entries, padding too",
            _of(_absolute, mean=lambda gap, real, mask: real.mean()),
            "Zeros on padding add nothing to the sum, but they do count in `mean()`: divide by how "
            "many entries of the mask are 1.",
        ),
        Mistake(
            "a mean of rows' means",
            _of(
                _absolute,
                mean=lambda gap, real, mask: (real.sum(1) / mask.sum(1).clamp(min=1)).mean(),
            ),
            "Every token counts the same here: one long completion has more of them.",
        ),
        Mistake(
            "a root mean square",
            _of(_absolute, mean=lambda gap, real, mask: _rms(real, mask)),
            "Squares give one extreme token most of the weight: the maximum is there for that.",
        ),
        Mistake(
            "|ratio − 1| in place of the difference of log-probs",
            _of(lambda new, old: torch.expm1(new - old).abs()),
            "For small gaps the two agree, for large ones they do not: the gap is asked for in "
            "nats.",
        ),
        Mistake(
            "a difference of probabilities",
            _of(lambda new, old: (new.exp() - old.exp()).abs()),
            "A rare token that is ten times too likely moves its probability by very little: "
            "compare logarithms.",
        ),
        Mistake(
            "the maximum before the mean",
            lambda logprobs, old_logprobs, mask: probe_gap(logprobs, old_logprobs, mask)[::-1],
            "The mean comes first.",
        ),
    ),
    alternatives=(_by_loop, _by_product),
    hints=(
        "Two tensors that should hold the same numbers. How far are they apart, token by token?",
        "Take the absolute difference, put 0 on padding, and then both the sum over the number of "
        "real tokens and the maximum are right.",
        "    gap = (logprobs - old_logprobs).abs().masked_fill(~mask.bool(), 0)\n"
        "    return gap.sum() / ..., gap.max()\n\n"
        "with a denominator that is at least 1.",
    ),
)


def _rms(real, mask):
    return (real.square().sum() / mask.sum().clamp(min=1)).sqrt()
