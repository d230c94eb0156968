"""Log-probabilities of given tokens."""

from collections.abc import Iterator

import torch
import torch.nn.functional as F

from rlcourse.algorithms.policies import token_logprobs
from rlcourse.checks.calling import Case
from rlcourse.checks.cases import CaseSampler, tensor
from rlcourse.checks.exercise import Exercise, Mistake
from rlcourse.checks.sketch import Sketch


def _score_cases(draw: CaseSampler) -> Iterator[Case]:
    def case(label: str, rows: int, length: int, vocab: int, **options) -> Case:
        logits = draw.normal(rows, length, vocab, scale=2)
        tokens = draw.integers(rows, length, high=vocab)
        return Case(label, {"logits": logits, "tokens": tokens, **options})

    worked = tensor([[[0.85, 0.15], [0.5, 0.5]]]).log()
    yield Case("worked: 0.85", {"logits": worked, "tokens": torch.zeros(1, 2, dtype=torch.long)})
    yield case("one row", 1, draw.size(3, 5), 3)
    yield case("two tokens", 2, 2, 4)
    yield case("several rows", draw.size(2, 3), draw.size(4, 5), draw.size(6, 7))
    side = draw.size(3, 4)
    yield case("N, L and V equal", side, side, side)
    yield case("a low temperature", 2, 4, 3, temperature=0.5)
    yield case("a high temperature", 2, 3, 5, temperature=draw.uniform(1, low=1.5, high=3).item())
    logits = tensor([[[1000.0, 0.0, -1000.0], [-1000.0, 1000.0, 0.0], [0.0, 0.0, 0.0]]])
    tokens = torch.tensor([[0, 2, 0]])
    yield Case("logits of ±1000", {"logits": logits, "tokens": tokens})
    same = draw.integers(2, 1, high=4).expand(2, 4).contiguous()
    yield Case("the same token again and again", {"logits": draw.normal(2, 4, 4), "tokens": same})
    small = draw.normal(2, 3, 4).float()
    yield Case("float32", {"logits": small, "tokens": draw.integers(2, 3, high=4)})


def _score_by_loop(logits, tokens, temperature=1.0):
    rows = []
    for row_logits, row in zip(logits, tokens, strict=True):
        scores = [
            row_logits[t, row[t + 1]] / temperature - (row_logits[t] / temperature).logsumexp(0)
            for t in range(len(row) - 1)
        ]
        rows.append(torch.stack(scores))
    return torch.stack(rows)


def _score_by_cross_entropy(logits, tokens, temperature=1.0):
    flat = (logits[:, :-1] / temperature).flatten(0, 1)
    nll = F.cross_entropy(flat, tokens[:, 1:].flatten(), reduction="none")
    return -nll.view(len(tokens), -1)


def _score_by_one_hot(logits, tokens, temperature=1.0):
    scores = torch.log_softmax(logits / temperature, dim=2)
    chosen = F.one_hot(tokens, logits.shape[2]).to(logits.dtype)
    return torch.einsum("nlv,nlv->nl", scores[:, :-1], chosen[:, 1:])


def line_by_line(logits, tokens, temperature=1.0):
    scores = (logits[:, :-1] / temperature).log_softmax(-1)
    index = tokens[:, 1:, None]
    picked = scores.gather(-1, index).squeeze(-1)
    return picked


_edit = Sketch(line_by_line).edit


EXERCISE = Exercise(
    reference=token_logprobs,
    lesson="01_policies",
    section="Reading: how likely was it?",
    points=4,
    difficulty=2,
    minutes=10,
    differentiable=("logits",),
    cases=_score_cases,
    mistakes=(
        Mistake(
            "scores by the logits at the token's own place",
            _edit("the shift", "logits[:, :-1]", "logits[:, 1:]"),
            "The logits at place t are computed from tokens 0 … t and predict token t+1: at its "
            "own place the model has already seen the token.",
        ),
        Mistake(
            "scores of all L tokens by the logits at their own place",
            _edit(
                "the shift", "logits[:, :-1]", "logits", "tokens[:, 1:, None]", "tokens[..., None]"
            ),
            "The logits at place t predict token t+1, so the first token has no score and the "
            "last logits score nothing: (N, L−1).",
        ),
        Mistake(
            "a shift the wrong way, the next place's logits for each token",
            _edit(
                "the shift",
                "logits[:, :-1]",
                "logits[:, 1:]",
                "tokens[:, 1:, None]",
                "tokens[:, :-1, None]",
            ),
            "The logits at place t score the token *after* it: logits[:, :-1] with tokens[:, 1:].",
        ),
        Mistake(
            "one score too many: `roll` brings the first token to the end",
            _edit(
                "the shift",
                "logits[:, :-1]",
                "logits",
                "tokens[:, 1:, None]",
                "tokens.roll(-1, 1)[..., None]",
            ),
            "The last logits predict a token that is not there; leave them out: (N, L−1).",
        ),
        Mistake(
            "the right logits with the tokens that they have already read",
            _edit("the shift", "tokens[:, 1:, None]", "tokens[:, :-1, None]"),
            "logits[:, :-1] are right, but what they predict is tokens[:, 1:].",
        ),
        Mistake(
            "scores that ignore the temperature",
            _edit("the temperature", " / temperature", ""),
            "The temperature is part of the policy: what was sampled at it is scored at it.",
            telling=2,
        ),
        Mistake(
            "logits multiplied by the temperature",
            _edit("the temperature", "/ temperature", "* temperature"),
            "The temperature divides the logits, here as in sampling.",
            telling=2,
        ),
        Mistake(
            "log-probs divided by the temperature after the softmax",
            _edit(
                "the temperature",
                " / temperature",
                "",
                "return picked",
                "return picked / temperature",
            ),
            "Those probabilities no longer sum to 1: divide the logits, then normalize.",
            telling=2,
        ),
        Mistake(
            "the logarithm of a softmax that has underflowed",
            _edit("the logarithm", "log_softmax(-1)", "softmax(-1).log()"),
            "A probability below 1e-308 is stored as 0, and log 0 is −∞: `log_softmax` never "
            "leaves the logarithm.",
            telling=1,
        ),
        Mistake(
            "a logarithm with a small number added",
            _edit("the logarithm", "log_softmax(-1)", "softmax(-1).add(1e-8).log()"),
            "log(p + ε) hides the −∞ and takes the gradient of unlikely tokens away: "
            "`log_softmax` is exact.",
            telling=2,
        ),
        Mistake(
            "the right scores with a dimension too many",
            _edit("the shape", ".squeeze(-1)", ""),
            "`gather` keeps the dimension that it picked from: `squeeze(-1)` drops it.",
        ),
        Mistake(
            "a softmax over the places in place of the vocabulary",
            _edit("the softmax", "log_softmax(-1)", "log_softmax(1)"),
            "At every place the model chooses among V tokens: normalize over the last dimension.",
        ),
        Mistake(
            "a softmax over the rows of the batch",
            _edit("the softmax", "log_softmax(-1)", "log_softmax(0)"),
            "Rows have nothing to do with each other: normalize over the last dimension.",
        ),
        Mistake(
            "probabilities, not their logarithms",
            _edit("the sign and the logarithm", "return picked", "return picked.exp()"),
            "Forty probabilities multiply to a number too small to keep; their logarithms add.",
        ),
        Mistake(
            "negative log-likelihoods",
            _edit("the sign and the logarithm", "return picked", "return -picked"),
            "A log-prob is never positive; `cross_entropy` returns its negative.",
        ),
        Mistake(
            "raw logits that were never normalized",
            _edit("the softmax", ".log_softmax(-1)", ""),
            "Logits are defined up to a constant: only after log_softmax do they mean anything "
            "on their own.",
        ),
        Mistake(
            "the sum over each row's tokens",
            _edit("the shape", ".squeeze(-1)", ".squeeze(-1).sum(1)"),
            "Keep a number per token, (N, L−1): the sum is taken later, where a mask says which "
            "tokens count.",
        ),
        Mistake(
            "log-probs that no gradient leaves",
            _edit("the gradient", "= scores", "= scores.detach()"),
            "The value is right but is cut off from `logits`, so nothing would be learned.",
        ),
    ),
    alternatives=(_score_by_loop, _score_by_cross_entropy, _score_by_one_hot, line_by_line),
    hints=(
        "Write the places under each other: which logits were there *before* token t was read?",
        "Take all logits but the last, all tokens but the first, log_softmax over the vocabulary, "
        "and pick one entry per place with `gather`.",
        "`gather` wants an index with as many dimensions as its source:\n\n"
        "    logprobs = (logits[:, :-1] / temperature).log_softmax(dim=...)\n"
        "    index = tokens[:, 1:, None]  # (N, L−1, 1)\n"
        "    return logprobs.gather(dim=-1, index=index)...",
    ),
)
