"""How far a policy has gone from its start, over whole texts of the start."""

from collections.abc import Iterator

import torch
from torch import Tensor

from rlcourse.algorithms.policies import masked_mean
from rlcourse.checks.declaring import Case, CaseSampler, Sketch, tensor


def cases(draw: CaseSampler) -> Iterator[Case]:
    def case(label: str, start: Tensor, logits: Tensor, mask: Tensor) -> Case:
        return Case(label, {"start_logits": start, "logits": logits, "mask": mask})

    coin, loaded = tensor([[[0.5, 0.5]] * 2] * 2).log(), tensor([[[0.8, 0.2]] * 2] * 2).log()
    worked = torch.tensor([[1, 1], [1, 0]]) > 0
    yield case("worked: two texts, of two words and of one", coin, loaded, worked)
    rows, tokens = draw.size(2, 3), draw.size(4, 5)
    words = tokens + 2  # never as many, or a mean over one looks like a mean over the other
    start, logits = draw.normal(rows, tokens, words), draw.normal(rows, tokens, words)
    whole = torch.ones(rows, tokens) > 0
    yield case("every token", start, logits, whole)
    yield case("logits that are no log-probs", start + 3, logits - 1, whole)
    mask = draw.mask(rows, tokens)
    yield case("texts of different lengths", start, logits, mask)
    yield case("a float mask", start, logits, mask.double())
    length = words + 3
    long = torch.arange(length)[None, :] < torch.tensor([[length], [1], [2]])
    apart = draw.normal(3, length, words), draw.normal(3, length, words)
    yield case("a long text and short ones", *apart, long)
    yield case("the policy is the start", start, start + 2, mask)
    side = draw.size(3, 4)
    cube = draw.normal(side, side, side), draw.normal(side, side, side)
    yield case("N, T and V equal", *cube, torch.ones(side, side) > 0)
    yield case("far apart", 4 * start, 4 * logits, mask)
    yield case("near each other", start, start + 0.05 * logits, mask)
    empty = draw.mask_with_empty_row(rows, tokens)
    yield case("an empty row", start, logits, empty)
    yield case("every row empty", start, logits, torch.zeros(rows, tokens) > 0)
    never = start.clone()
    never[..., draw.integer(0, words - 1)] = -torch.inf
    yield case("a word that the start never writes", never, logits, mask)
    nowhere = logits.masked_fill(~mask[..., None], torch.nan)
    yield case("no numbers on padding", start, nowhere, mask)
    sure = torch.zeros(1, 2, 3).double()
    sure[0, :, 1] = 1000.0
    yield case("logits of 1000", tensor([[[3.0, 1, 0], [0, 2, 1]]]), sure, torch.ones(1, 2) > 0)
    yield case("float32", start.float(), logits.float(), mask)


def line_by_line(start_logits, logits, mask):
    logp = start_logits.log_softmax(-1)
    logq = logits.log_softmax(-1)
    p = logp.exp()
    gap = (logp - logq).masked_fill(p == 0, 0)
    terms = p * gap
    kl = terms.sum(-1)
    real = mask.bool()
    kl = kl.masked_fill(~real, 0)
    per_text = kl.sum(1)
    return per_text.mean()


def at_the_top(terms, logp):
    return terms.gather(-1, logp.argmax(-1, keepdim=True)).squeeze(-1)


def by_loop(start_logits, logits, mask):
    total = start_logits.new_zeros(())
    for i, t in mask.bool().nonzero().tolist():
        logp, logq = start_logits[i, t].log_softmax(0), logits[i, t].log_softmax(0)
        for a, b in zip(logp, logq, strict=True):
            if a > -torch.inf:
                total = total + a.exp() * (a - b)
    return total / len(mask)


def by_cross_entropy(start_logits, logits, mask):
    """What the start would pay for the policy's code, less what it pays for its own."""
    p, real = start_logits.softmax(-1), mask.bool()

    def bits(x):
        return -(p * x.log_softmax(-1)).masked_fill(p == 0, 0).sum(-1).masked_fill(~real, 0)

    return (bits(logits) - bits(start_logits)).sum() / mask.shape[0]


sketch = Sketch(line_by_line, at_the_top, masked_mean)
alternatives = (by_loop, by_cross_entropy)
oracle = by_loop
