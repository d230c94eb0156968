"""Log-probabilities of given tokens."""

from collections.abc import Iterator

import torch
import torch.nn.functional as F

from rlcourse.checks.declaring import Case, CaseSampler, Sketch, tensor


def cases(draw: CaseSampler) -> Iterator[Case]:
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


def line_by_line(logits, tokens, temperature=1.0):
    scores = (logits[:, :-1] / temperature).log_softmax(-1)
    index = tokens[:, 1:, None]
    picked = scores.gather(-1, index).squeeze(-1)
    return picked


sketch = Sketch(line_by_line)
alternatives = (_score_by_loop, _score_by_cross_entropy)
