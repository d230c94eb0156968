"""The exact KL divergence of two softmax distributions."""

from collections.abc import Iterator

import torch
from torch import Tensor

from rlcourse.algorithms.importance_sampling import kl_divergence
from rlcourse.checks.calling import Case
from rlcourse.checks.cases import CaseSampler, tensor
from rlcourse.checks.exercise import Exercise, Mistake
from rlcourse.checks.sketch import Sketch


def _cases(draw: CaseSampler) -> Iterator[Case]:
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


_edit = Sketch(line_by_line, raised).edit


EXERCISE = Exercise(
    reference=kl_divergence,
    lesson="04_importance_sampling",
    section="A ruler for policies",
    points=2,
    difficulty=2,
    minutes=6,
    differentiable=("logits_p", "logits_q"),
    cases=_cases,
    mistakes=(
        Mistake(
            "KL(q‖p), the other direction",
            _edit(
                "the direction",
                "logits_p.log_softmax(-1)",
                "logits_q.log_softmax(-1)",
                "logits_q.log_softmax(-1)",
                "logits_p.log_softmax(-1)",
            ),
            "The first argument draws the samples, so it supplies the weights: Σ *p* (log p − "
            "log q).",
        ),
        Mistake(
            "logits that were never normalized",
            _edit(
                "the logarithm",
                "logits_p.log_softmax(-1)",
                "logits_p",
                "logits_q.log_softmax(-1)",
                "logits_q",
            ),
            "Logits are not log-probs until their logsumexp is subtracted: use `log_softmax`.",
        ),
        Mistake(
            "0 · log 0, which is NaN",
            _edit("where p is 0", ".masked_fill(p == 0, 0)", ""),
            "Where p is 0 the term is 0, whatever q is; 0 times infinity is not a number unless "
            "you take care of it.",
            telling=2,
        ),
        Mistake(
            "the logarithm of a softmax that has underflowed",
            _edit(
                "the logarithm",
                "logits_p.log_softmax(-1)",
                "logits_p.softmax(-1).log()",
                "logits_q.log_softmax(-1)",
                "logits_q.softmax(-1).log()",
            ),
            "`softmax` rounds small probabilities to 0, and their logarithm is −∞: "
            "`log_softmax` never leaves log space.",
            telling=2,
        ),
        Mistake(
            "the logarithm of a softmax that has underflowed, times 0 besides",
            _edit(
                "where p is 0",
                "logits_p.log_softmax(-1)",
                "logits_p.softmax(-1).log()",
                "logits_q.log_softmax(-1)",
                "logits_q.softmax(-1).log()",
                ".masked_fill(p == 0, 0)",
                "",
            ),
            "`softmax` rounds small probabilities to 0, their logarithm is −∞, and 0 · ∞ is not a "
            "number: `log_softmax` never leaves log space, and the term where p is 0 is 0.",
        ),
        *(
            Mistake(
                f"logarithms of probabilities that were kept from 0 by a constant of {by:g}",
                _edit("the logarithm", "p * difference", f"raised(logits_p, logits_q, {by})"),
                "The constant decides what a small probability costs, however small it is: "
                "`log_softmax` never leaves log space and needs none.",
                telling=2,
                atol=1e-3,  # added or a lower bound, the numbers are nearly the same
            )
            for by in (1e-8, 1e-10, 1e-12)
        ),
        Mistake(
            "terms of which NaN and infinity were made numbers",
            _edit("where p is 0", "p * difference", "torch.nan_to_num(p * (logp - logq))"),
            "Where p is 0 the term is 0, but where only q is 0 the divergence *is* infinite: mask "
            "the first, leave the second.",
            telling=1,
        ),
        Mistake(
            "a difference of logits that were never normalized, weighted by p",
            _edit("the logarithm", "(logp - logq)", "(logits_p - logits_q)"),
            "Logits are log-probs only up to a constant, another one for p than for q: use "
            "`log_softmax` for both.",
        ),
        Mistake(
            "weights p that carry no gradient",
            _edit("the gradient", "logp.exp()", "logp.exp().detach()"),
            "The value is right, but p depends on `logits_p`, too: in the lesson's section 7 the "
            "gradient would come out as 0. Detach nothing.",
        ),
        Mistake(
            "a q that carries no gradient",
            _edit("the gradient", "logits_q.log_softmax", "logits_q.detach().log_softmax"),
            "The value is right, but `logits_q` gets no gradient (as happens if the whole "
            "log p − log q is detached). What is held constant is the caller's choice: detach "
            "nothing.",
        ),
        Mistake(
            "a divergence that no gradient leaves",
            _edit("the gradient", "terms.sum(-1)", "terms.sum(-1).detach()"),
            "It is a function of both logits and will be differentiated: no `torch.no_grad()`, no "
            "`detach()`.",
        ),
        Mistake(
            "the divergence with its sign turned",
            _edit("the sign", "return terms", "return -terms"),
            "A KL divergence is never negative: log p − log q, not the other way.",
        ),
        Mistake(
            "the mean of both directions",
            _edit(
                "the direction",
                "terms.sum(-1)",
                "(terms.sum(-1) + kl_divergence(logits_q, logits_p)) / 2",
            ),
            "That is Jeffreys' symmetric divergence, halved; KL has a direction.",
        ),
        Mistake(
            "the divergence in bits",
            _edit("the unit", "terms.sum(-1)", "terms.sum(-1) / torch.tensor(2.0).log()"),
            "In this course information is in nats: natural logarithms.",
        ),
        Mistake(
            "the cross-entropy −Σ p log q",
            _edit("what is weighted", "p * difference", "-p * logq.masked_fill(p == 0, 0)"),
            "Subtract the entropy of p: what costs bits even with the right code is no divergence.",
        ),
        Mistake(
            "log p − log q, not weighted by p",
            _edit("what is weighted", "p * difference", "logp - logq"),
            "A divergence is an expectation: weigh each action by its probability under p.",
        ),
        Mistake(
            "the mean over actions in place of the sum",
            _edit("the sum", "terms.sum(-1)", "terms.sum(-1) / logits_p.shape[-1]"),
            "The weights p sum to 1 already: there is nothing to divide by.",
        ),
        Mistake(
            "a sum along the first dimension",
            _along_first,
            "The actions are the *last* dimension; all others are rows.",
        ),
        Mistake(
            "one number for all rows",
            _edit("the sum", "terms.sum(-1)", "terms.sum()"),
            "Each row is a distribution of its own: sum over the last dimension only.",
        ),
    ),
    alternatives=(_by_loop, _by_torch, line_by_line),
    hints=(
        "Both arguments are logits. What turns them into log-probs without ever leaving log space?",
        "p times (log p − log q), summed over the last dimension. Where p is 0, log p is −∞: make "
        "that term 0 before multiplying.",
        "With `log_softmax` of both:\n\n"
        "    p = logp.exp()\n"
        "    return (p * (logp - logq).masked_fill(p == 0, ...)).sum(dim=...)",
    ),
)
