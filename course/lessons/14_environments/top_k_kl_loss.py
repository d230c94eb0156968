"""The divergence over the teacher's likeliest words, and all others as one."""

from collections.abc import Iterator
from math import log

import torch
from torch import Tensor

from rlcourse.algorithms.importance_sampling import kl_divergence
from rlcourse.algorithms.policies import masked_mean
from rlcourse.checks.declaring import Case, CaseSampler, Sketch, tensor


def cases(draw: CaseSampler) -> Iterator[Case]:
    def case(label: str, logits: Tensor, teacher: Tensor, mask: Tensor, k: int) -> Case:
        arguments = {"logits": logits, "teacher_logits": teacher, "mask": mask, "k": k}
        return Case(label, arguments)

    coin = tensor([[[0.25, 0.25, 0.5]]]).log(), tensor([[[0.2, 0.6, 0.2]]]).log()
    yield case("worked: three words, one kept", *coin, torch.ones(1, 1) > 0, 1)
    rows, tokens, words = draw.size(2, 3), draw.size(4, 5), draw.size(7, 8)
    logits, teacher = draw.normal(rows, tokens, words), draw.normal(rows, tokens, words)
    whole = torch.ones(rows, tokens) > 0
    for k in (1, 2, 4):
        yield case(f"every token, k = {k}", logits, teacher, whole, k)
    yield case("all words but one", logits, teacher, whole, words - 1)
    yield case("logits that are no log-probs", logits + 3, teacher - 1, whole, 3)
    mask = draw.mask(rows, tokens)
    yield case("rows of different lengths", logits, teacher, mask, 2)
    yield case("a float mask", logits, teacher, mask.double(), 3)
    between = torch.tensor([[0, 1, 1, 0, 0, 1, 1], [0, 1, 0, 0, 0, 0, 0]]) > 0
    pair = draw.normal(2, 7, words), draw.normal(2, 7, words)
    yield case("turns of an environment between", *pair, between, 2)
    yield case("the student is the teacher", logits, logits + 2, mask, 2)
    side = draw.size(4, 5)
    cube = draw.normal(side, side, side), draw.normal(side, side, side)
    yield case("N, T and V equal", *cube, torch.ones(side, side) > 0, 2)
    yield case("far apart", 3 * logits, 3 * teacher, mask, 3)
    yield case("an empty mask", logits, teacher, torch.zeros(rows, tokens) > 0, 2)
    yield case("float32", logits.float(), teacher.float(), mask, 2)


def line_by_line(logits, teacher_logits, mask, k):
    logp = logits.log_softmax(-1)
    logq = teacher_logits.detach().log_softmax(-1)
    top = logq.topk(k).indices
    p = logp.gather(-1, top)
    q = logq.gather(-1, top)
    p_rest = rest(logp, top)
    q_rest = rest(logq, top)
    inside = p.exp() * (p - q)
    outside = p_rest.exp() * (p_rest - q_rest)
    kl = inside.sum(-1) + outside
    real = mask.to(kl.dtype)
    total = (kl * real).sum()
    return total / real.sum().clamp(min=1)


def rest(logprobs, top):
    return logprobs.scatter(-1, top, -torch.inf).logsumexp(-1)


def best(logprobs, top):
    return logprobs.scatter(-1, top, -torch.inf).amax(-1)


def log_of_others(logprobs, k):
    return log(logprobs.shape[-1] - k)


def renormalized(p, q):
    return kl_divergence(p, q)


def by_probabilities(logits, teacher_logits, mask, k):
    """Sums of probabilities in place of their logarithms."""
    p, q = logits.softmax(-1), teacher_logits.detach().softmax(-1)
    kept = torch.zeros_like(q).scatter(-1, q.topk(k).indices, 1.0)
    inside = (kept * p * (p.log() - q.log())).sum(-1)
    p_rest, q_rest = ((1 - kept) * p).sum(-1), ((1 - kept) * q).sum(-1)
    return masked_mean(inside + p_rest * (p_rest.log() - q_rest.log()), mask)


sketch = Sketch(line_by_line, rest, best, log_of_others, renormalized)
alternatives = (by_probabilities,)
