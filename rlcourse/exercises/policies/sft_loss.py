"""The loss of supervised fine-tuning."""

from collections.abc import Iterator

import torch

from rlcourse.algorithms.policies import masked_mean, sft_loss
from rlcourse.checks.calling import Case
from rlcourse.checks.cases import CaseSampler, mask_of, tensor
from rlcourse.checks.exercise import Exercise, Mistake
from rlcourse.checks.sketch import Sketch
from rlcourse.exercises.policies.masked_mean import WITH_ZERO, WORKED, WORKED_MASK


def _loss_cases(draw: CaseSampler) -> Iterator[Case]:
    yield Case("worked: two rows", {"logprobs": WORKED, "mask": WORKED_MASK})
    yield Case("a token of log-prob 0", {"logprobs": WITH_ZERO, "mask": WORKED_MASK})
    certain = draw.logprobs(2, 4) * tensor([[1, 0, 1, 1], [0, 1, 1, 0]])
    padded = mask_of(torch.tensor([4, 2]), 4)
    yield Case("tokens of log-prob 0", {"logprobs": certain, "mask": padded})
    ends_certain = tensor([[-1.0, -2.0, 0.0], [-0.5, 0.0, -1.5]])
    padded = mask_of(torch.tensor([3, 1]), 3)
    yield Case("a last token of log-prob 0", {"logprobs": ends_certain, "mask": padded})
    for label, logprobs, mask in draw.batches():
        yield Case(label, {"logprobs": logprobs, "mask": mask})


def _loss_by_loop(logprobs, mask):
    total, count = logprobs.new_zeros(()), 0
    for row, real in zip(logprobs, mask, strict=True):
        for value, one in zip(row, real, strict=True):
            if one:
                total, count = total - value, count + 1
    return total / max(count, 1)


def _loss_by_einsum(logprobs, mask):
    weights = mask.to(logprobs.dtype)
    return -torch.einsum("nt,nt->", logprobs, weights) / max(1.0, weights.sum().item())


def line_by_line(logprobs, mask):
    real = mask.to(logprobs.dtype)
    total = (logprobs * real).sum()
    mean = total / real.sum().clamp(min=1)
    return -mean


_edit = Sketch(line_by_line, masked_mean).edit
_MEAN = "total / real.sum().clamp(min=1)"


EXERCISE = Exercise(
    reference=sft_loss,
    lesson="01_policies",
    section="Imitation",
    points=2,
    difficulty=1,
    minutes=4,
    differentiable=("logprobs",),
    cases=_loss_cases,
    mistakes=(
        Mistake(
            "the mean log-prob without the minus",
            _edit("the sign", "-mean", "mean"),
            "An optimizer minimizes: without the minus it would unlearn the demonstrations.",
        ),
        Mistake(
            "a mean over all positions, padding included",
            _edit("the average", _MEAN, "(logprobs * real).mean()"),
            "A batch with more padding would learn less: divide by `mask.sum()`.",
        ),
        Mistake(
            "a loss that learns padding, too",
            _edit("the average", _MEAN, "logprobs.mean()"),
            "What stands after the end of a demonstration was never written: the mask leaves "
            "it out.",
        ),
        Mistake(
            "the mean of the rows' means",
            _edit("the average", _MEAN, "masked_mean(logprobs, mask, dim=1).mean()"),
            "Asked is a mean over all real tokens of the batch, in which each counts the same; "
            "this one weighs the tokens of a short demonstration more.",
        ),
        Mistake(
            "a sum divided by how many log-probs are not 0",
            _edit("the count", "real.sum()", "(logprobs * real != 0).sum()"),
            "A token that was certain has the log-prob 0 and counts: divide by `mask.sum()`.",
            telling=2,
        ),
        Mistake(
            "a sum over padding as well, divided by the number of real tokens",
            _edit("the padding", "(logprobs * real)", "logprobs"),
            "What stands after the end of a demonstration was never written: multiply by the "
            "mask before you sum.",
        ),
        Mistake(
            "the mean over padding, by the mask turned around",
            _edit("the padding", "mask.to", "(~mask.bool()).to"),
            "The mask is 1 on the tokens that count.",
        ),
        Mistake(
            "sums over each row's tokens, averaged over rows",
            _edit("the average", _MEAN, "total / len(mask)"),
            "That is the log-prob of a whole completion, which lesson 02 will want; here the "
            "unit is nats per token.",
        ),
        Mistake(
            "a sum over all tokens",
            _edit("the average", _MEAN, "total"),
            "A sum grows with the batch, and so would the step: divide by the number of tokens.",
        ),
        Mistake(
            "a loss that is NaN for an empty batch",
            _edit("an empty batch", ".clamp(min=1)", ""),
            "No tokens means no loss, 0: `masked_mean` has settled this already.",
            telling=1,
        ),
        Mistake(
            "the mean of the selected log-probs, which is NaN for an empty batch",
            _edit("an empty batch", _MEAN, "logprobs[mask.bool()].mean()"),
            "No tokens means no loss, 0: `masked_mean` has settled this already.",
            telling=1,
        ),
        Mistake(
            "the mean of minus the probabilities",
            _edit("the logarithm", "(logprobs * real)", "(logprobs.exp() * real)"),
            "Maximum likelihood adds logarithms: a token that was thought impossible must hurt.",
        ),
        Mistake(
            "perplexity, e to the loss",
            _edit("the logarithm", "-mean", "(-mean).exp()"),
            "That is how people report it; its gradient is scaled by the perplexity itself.",
        ),
        Mistake(
            "a loss that no gradient leaves",
            _edit("the gradient", "-mean", "-mean.detach()"),
            "The value is right but is cut off from `logprobs` (by detach, item, no_grad or a new "
            "tensor), so nothing would be learned.",
        ),
    ),
    alternatives=(_loss_by_loop, _loss_by_einsum, line_by_line),
    hints=(
        "Maximum likelihood: make the demonstrated tokens as likely as possible, and no others.",
        "It is the mean of `logprobs` over real tokens, and an optimizer minimizes.",
        "You have written the mean already:\n\n    return -masked_mean(...)",
    ),
)
