"""The exact KL divergence of two softmax distributions."""

from collections.abc import Iterator

import torch
from torch import Tensor

from rlcourse.algorithms.importance_sampling import kl_divergence  # noqa: F401  (the page names it)
from rlcourse.checks.declaring import Case, CaseSampler, Sketch, tensor


def cases(draw: CaseSampler) -> Iterator[Case]:
    def case(label: str, p: Tensor, q: Tensor, differentiable: tuple[str, ...] = ()) -> Case:
        return Case(label, {"logits_p": p, "logits_q": q}, differentiable)

    loaded, fair = tensor([0.6, 0.4]).log(), tensor([0.5, 0.5]).log()
    yield case("worked: a loaded coin against a fair one", loaded, fair)
    yield case("worked: a fair coin against a loaded one", fair, loaded)
    size = draw.size(3, 6)
    yield case("logits that are no log-probs", draw.normal(size) + 3, draw.normal(size) - 1)
    same = draw.normal(size)
    yield case("the same distribution", same, same + 2)
    yield case("far apart", draw.normal(size, scale=4), draw.normal(size, scale=4))
    rows, tokens = draw.shape()
    yield case("a row for each token", draw.normal(rows, tokens, size), draw.normal(tokens, size))
    yield case("rows as many as actions", draw.normal(size, size), draw.normal(size, size))
    never = draw.normal(size)
    never[draw.integer(0, size - 1)] = -torch.inf
    both = "logits_p", "logits_q"
    yield case("p never takes an action", never, draw.normal(size), both)
    seldom = tensor([1 - 2e-4, 1e-4, 1e-4]).log()
    yield case("p seldom takes an action, q often", seldom, draw.normal(3))
    yield case("neither takes an action", never.clone(), never + draw.normal(size) / 4)
    yield case("logits of ±1000", tensor([1000.0, 0, -1000]), draw.normal(3))
    excluding = draw.normal(size)
    excluding[draw.integer(0, size - 1)] = -1000
    yield case("q all but excludes an action", draw.normal(size), excluding)
    impossible = draw.normal(size)
    impossible[draw.integer(0, size - 1)] = -torch.inf
    yield case("q never takes what p takes: infinite", draw.normal(size), impossible)
    yield case("float32", draw.normal(2, size).float(), draw.normal(2, size).float())


def _logs(logits_p, logits_q):
    return logits_p.log_softmax(-1), logits_q.log_softmax(-1)


def _along_first(logits_p, logits_q):
    logits_p, logits_q = torch.broadcast_tensors(logits_p, logits_q)
    logp, logq = logits_p.log_softmax(0), logits_q.log_softmax(0)
    return (logp.exp() * (logp - logq).masked_fill(logp.exp() == 0, 0)).sum(-1)


def _by_loop(logits_p, logits_q):
    p = logits_p.double().softmax(-1)
    q = logits_q.double().log_softmax(-1).expand_as(p)
    total = torch.zeros_like(p[..., 0])
    for action in range(p.shape[-1]):
        pa = p[..., action]
        term = torch.where(pa > 0, pa * (pa.clamp(min=1e-300).log() - q[..., action]), 0.0)
        total = total + term
    return total.to(logits_p.dtype)


def _by_torch(logits_p, logits_q):
    logp, logq = _logs(*torch.broadcast_tensors(logits_p, logits_q))
    finite = logq.masked_fill(logp.exp() == 0, 0)
    terms = torch.nn.functional.kl_div(
        finite, logp.masked_fill(logp.exp() == 0, -1e9), reduction="none", log_target=True
    )
    return terms.sum(-1)


def line_by_line(logits_p, logits_q):
    logp = logits_p.log_softmax(-1)
    logq = logits_q.log_softmax(-1)
    p = logp.exp()
    difference = (logp - logq).masked_fill(p == 0, 0)
    terms = p * difference
    return terms.sum(-1)


def raised(logits_p, logits_q, by):
    """With the logarithm of probabilities that were raised a little."""
    p, q = logits_p.softmax(-1), logits_q.softmax(-1)
    return p * ((p + by).log() - (q + by).log())


sketch = Sketch(line_by_line, raised)
alternatives = (_by_loop, _by_torch)
