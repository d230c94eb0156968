"""The divergence from student to teacher at every token, over the whole vocabulary."""

from collections.abc import Iterator

import torch
from torch import Tensor

from rlcourse.algorithms.policies import masked_mean
from rlcourse.checks.declaring import Case, CaseSampler, Sketch, tensor


def cases(draw: CaseSampler) -> Iterator[Case]:
    def case(label: str, logits: Tensor, teacher: Tensor, mask: Tensor) -> Case:
        return Case(label, {"logits": logits, "teacher_logits": teacher, "mask": mask})

    coin, loaded = tensor([[[0.5, 0.5]]]).log(), tensor([[[0.8, 0.2]]]).log()
    one = torch.ones(1, 1) > 0
    yield case("worked: a fair coin, a teacher with a loaded one", coin, loaded, one)
    rows, tokens, words = draw.size(2, 3), draw.size(4, 5), draw.size(6, 7)
    logits, teacher = draw.normal(rows, tokens, words), draw.normal(rows, tokens, words)
    whole = torch.ones(rows, tokens) > 0
    yield case("every token", logits, teacher, whole)
    yield case("logits that are no log-probs", logits + 3, teacher - 1, whole)
    mask = draw.mask(rows, tokens)
    yield case("rows of different lengths", logits, teacher, mask)
    yield case("a float mask", logits, teacher, mask.double())
    between = torch.tensor([[0, 1, 1, 0, 0, 1, 1], [0, 1, 0, 0, 0, 0, 0]]) > 0
    pair = draw.normal(2, 7, words), draw.normal(2, 7, words)
    yield case("turns of an environment between", *pair, between)
    yield case("the student is the teacher", logits, logits + 2, mask)
    side = draw.size(3, 4)
    cube = draw.normal(side, side, side), draw.normal(side, side, side)
    yield case("N, T and V equal", *cube, torch.ones(side, side) > 0)
    yield case("far apart", 4 * logits, 4 * teacher, mask)
    yield case("an empty mask", logits, teacher, torch.zeros(rows, tokens) > 0)
    never = logits.clone()
    never[..., draw.integer(0, words - 1)] = -torch.inf
    yield case("a word that the student never writes", never, teacher, mask)
    sure = torch.zeros(1, 2, 3).double()
    sure[0, :, 1] = 1000.0
    yield case("logits of 1000", tensor([[[3.0, 1, 0], [0, 2, 1]]]), sure, torch.ones(1, 2) > 0)
    yield case("float32", logits.float(), teacher.float(), mask)


def line_by_line(logits, teacher_logits, mask):
    logp = logits.log_softmax(-1)
    logq = teacher_logits.detach().log_softmax(-1)
    p = logp.exp()
    gap = (logp - logq).masked_fill(p == 0, 0)
    terms = p * gap
    kl = terms.sum(-1)
    real = mask.to(kl.dtype)
    total = (kl * real).sum()
    return total / real.sum().clamp(min=1)


def at_the_top(terms, logp):
    return terms.gather(-1, logp.argmax(-1, keepdim=True)).squeeze(-1)


def by_score(logits, teacher_logits, mask):
    """With the log-ratio as a constant: the part of the gradient that it leaves out is 0."""
    logp, logq = logits.log_softmax(-1), teacher_logits.log_softmax(-1)
    p = logp.exp()
    gap = (logp - logq).masked_fill(p == 0, 0).detach()
    return masked_mean((p * gap).sum(-1), mask)


def by_loop(logits, teacher_logits, mask):
    total, count = 0 * logits[mask.bool()].nan_to_num(neginf=0.0).sum(), 0
    for i, t in mask.bool().nonzero().tolist():
        logp, logq = logits[i, t].log_softmax(0), teacher_logits[i, t].detach().log_softmax(0)
        for a, b in zip(logp, logq, strict=True):
            if a > -torch.inf:
                total = total + a.exp() * (a - b)
        count += 1
    return total / max(count, 1)


sketch = Sketch(line_by_line, at_the_top)
alternatives = (by_score, by_loop)
