"""Which tokens a loss really sees, asked of its gradient."""

from collections.abc import Iterator
from dataclasses import replace

import torch
from torch import Tensor

from rlcourse.checks.declaring import Case, CaseSampler, Spec, tensor

EOS, PAD = 2, 0


def cases(draw: CaseSampler) -> Iterator[Case]:
    worked = torch.tensor([[5, 7, EOS, PAD], [6, EOS, PAD, PAD], [4, 9, 8, 5]])
    real = _real(worked)
    yield _case("worked: a right mask", worked, real, tensor([1.0, -1.0, 0.5]))
    yield _case("worked: the EOS left out", worked, real & (worked != EOS))
    yield _case("worked: shifted by one", worked, real.roll(1, 1))
    yield _case("worked: the padding counted", worked, torch.ones_like(real))
    at_once = torch.tensor([[EOS, PAD, PAD], [5, EOS, PAD]])
    yield _case("an EOS at once", at_once, _real(at_once))
    for label, pad in (("padding of its own", PAD), ("padding with the EOS", EOS)):
        rows, width = draw.size(3, 5), draw.size(5, 8)
        tokens = draw.integers(rows, width, high=9) + 3
        for row, length in enumerate(draw.lengths(rows, width).tolist()):
            tokens[row, length - 1] = EOS
            tokens[row, length:] = pad
        tokens[0] = draw.integers(width, high=9) + 3  # cut off: it never ends
        real, weights = _real(tokens), draw.rewards(rows)
        late = real.roll(1, 1)  # from the second token on, and one too far
        yield _case(f"{label}: a right mask", tokens, real, weights)
        yield _case(f"{label}: the EOS left out", tokens, real & (tokens != EOS), weights)
        yield _case(f"{label}: everything counted", tokens, torch.ones_like(real), weights)
        yield _case(f"{label}: shifted by one", tokens, late, weights)
        first_only = torch.zeros_like(real)
        first_only[:, 0] = True
        yield _case(f"{label}: first tokens only", tokens, first_only, weights)
        for by in (1e-4, 1e-9):
            yield _scaled(_case(f"{label}: a right mask", tokens, real, weights), by)


def _scaled(case: Case, by: float) -> Case:
    """A loss that is `by` times as large, as one that is divided by many tokens is."""
    weights = by * case.arguments["loss"].options["weights"]
    return replace(
        case,
        label=f"{case.label}, {by:g} times the gradient",
        arguments=case.arguments | {"loss": Spec("weighted_loss", {"weights": weights})},
    )


def _real(tokens: Tensor) -> Tensor:
    ended = (tokens == EOS).long()
    return ended.cumsum(1) - ended == 0


def _case(label: str, tokens: Tensor, counted: Tensor, weights: Tensor | None = None) -> Case:
    """A loss whose gradient is not 0 exactly where `counted` says."""
    each = tensor([1.0] * len(tokens)) if weights is None else weights
    loss = Spec("weighted_loss", {"weights": counted.double() * each[:, None] / counted.sum()})
    return Case(label, {"loss": loss, "tokens": tokens, "eos_id": EOS})


def _probe(real_of=None, seen=lambda gradient: gradient != 0, counts=None):
    """The probe with another idea of real tokens, of what counts, or of what to return."""

    def probe(loss, tokens, eos_id):
        logprobs = torch.full(tokens.shape, -1.0, dtype=torch.float64, requires_grad=True)
        (gradient,) = torch.autograd.grad(loss(logprobs), logprobs)
        counted = seen(gradient)
        real = (real_of or _real)(tokens)
        if counts is not None:
            return counts(real, counted)
        return (real & ~counted).sum(), (counted & ~real).sum()

    return probe


def _before_eos(tokens):
    return (tokens == EOS).long().cumsum(1) == 0


def _not_padding(tokens):
    return tokens != PAD


def _not_eos(tokens):
    return tokens != EOS


def _nothing_without_eos(tokens):
    return _real(tokens) & (tokens == EOS).any(1, keepdim=True)


def _by_argmax(tokens):
    return torch.arange(tokens.shape[1]) <= (tokens == EOS).int().argmax(1, keepdim=True)


def _one_too_far(tokens):
    ended = (tokens == EOS).long().cumsum(1)
    return torch.cat([torch.ones_like(ended[:, :2]), 1 - ended], 1)[:, : tokens.shape[1]] > 0


def _net(real, counted):
    difference = counted.sum() - real.sum()
    return (-difference).clamp(min=0), difference.clamp(min=0)


def _by_backward(loss, tokens, eos_id):
    logprobs = torch.zeros(tokens.shape, dtype=torch.float64, requires_grad=True)
    loss(logprobs).backward()
    missing = extra = 0
    for row, gradient in zip(tokens.tolist(), logprobs.grad.tolist(), strict=True):
        length = row.index(eos_id) + 1 if eos_id in row else len(row)
        missing += sum(g == 0 for g in gradient[:length])
        extra += sum(g != 0 for g in gradient[length:])
    return torch.tensor(missing), torch.tensor(extra)


def _by_random_logprobs(loss, tokens, eos_id):
    logprobs = (-torch.arange(1.0, tokens.numel() + 1)).double().reshape(tokens.shape)
    logprobs.requires_grad_()
    counted = torch.autograd.grad(loss(logprobs), logprobs)[0].abs() > 0
    before = torch.cumsum(tokens == eos_id, 1).roll(1, 1)
    before[:, 0] = 0
    real = before == 0
    return (real > counted).sum(), (counted > real).sum()


alternatives = (_by_backward, _by_random_logprobs)
