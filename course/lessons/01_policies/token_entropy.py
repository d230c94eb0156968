"""The entropy of the distributions that tokens come from."""

from collections.abc import Iterator

import torch

from rlcourse.checks.declaring import Case, CaseSampler, Sketch, tensor


def cases(draw: CaseSampler) -> Iterator[Case]:
    yield Case("worked: a fair coin", {"logits": torch.zeros(1, 1, 2).double()})
    yield Case("worked: 0.85", {"logits": tensor([[[0.85, 0.15]]]).log()})
    vocab = draw.size(4, 6)
    yield Case("equal logits", {"logits": torch.full((1, 2, vocab), 3.0).double()})
    shape = draw.size(2, 3), draw.size(4, 5), draw.size(6, 7)
    yield Case("random logits", {"logits": draw.normal(*shape, scale=2)})
    side = draw.size(3, 4)
    yield Case("N, L and V equal", {"logits": draw.normal(side, side, side)})
    certain = tensor([[[1000.0, 0.0, -1000.0], [-1000.0, 0.0, 1000.0]]])
    yield Case("logits of ±1000", {"logits": certain})
    yield Case("float32", {"logits": draw.normal(2, 3, 4).float()})


def _entropy_by_logsumexp(logits):
    """H = log Z − E[z]."""
    return logits.logsumexp(-1) - (logits.softmax(-1) * logits).sum(-1)


def _entropy_by_distribution(logits):
    return torch.distributions.Categorical(logits=logits, validate_args=False).entropy()


def line_by_line(logits):
    logprobs = logits.log_softmax(-1)
    terms = logprobs.exp() * logprobs
    entropy = -terms.sum(-1)
    return entropy


sketch = Sketch(line_by_line)
alternatives = (_entropy_by_logsumexp, _entropy_by_distribution)
