"""Drawing the next token. Draws are random, so frequencies over many equal rows are compared."""

from collections.abc import Iterator
from dataclasses import replace

import torch
from torch import Tensor

from rlcourse.algorithms.policies import sample_tokens
from rlcourse.checks.calling import Case
from rlcourse.checks.cases import CaseSampler, tensor
from rlcourse.checks.exercise import Exercise
from rlcourse.checks.specs import Spec
from rlcourse.exercises.policies.sample_tokens_mistakes import MISTAKES, filtered

DRAWS = 1000  # of each of the two distributions of a random case
LAGS = 8
ATOL = 0.13  # between two such frequencies: at least 5.8 standard errors


def frequencies(case: Case, tokens: Tensor) -> tuple | dict[str, bool]:
    """What is known of many draws: how often each token came, and how often as k rows before.

    ((2, V), (2 LAGS,), whether all are tokens). Rows that know nothing of each other are alike as
    often as chance has it. Small cases leave no choice but the likeliest.
    """
    logits = case.arguments["logits"]
    if len(logits) < 2 * DRAWS:
        return {"the likeliest token in every row": torch.equal(tokens, logits.argmax(-1))}
    size = logits.shape[1]
    known = tokens.clamp(0, size - 1)
    shares = torch.nn.functional.one_hot(known, size).view(DRAWS, 2, -1).double().mean(0)
    if size == 2:
        shares = shares.sort(-1).values  # a tie has no first
    lags = range(1, LAGS + 1)
    alike = [(known[k:] == known[:-k])[start::2] for k in lags for start in (0, 1)]
    meetings = torch.stack([rows.double().mean() for rows in alike])
    return shares, meetings, {"all are tokens": torch.equal(known, tokens)}


def _many(
    label: str,
    draw: CaseSampler,
    first: list[float],
    second: list[float],
    constant: float | None = None,
    **options,
) -> Case:
    """DRAWS rows of each distribution, in turn. Logits are log-probs plus a constant, or any."""
    added = draw.normal(2, 1) if constant is None else constant
    logits = tensor([first, second]).log() + added
    generator = Spec("watched_generator", {"seed": draw.integer(0, 10_000)})
    arguments = {"logits": logits.repeat(DRAWS, 1), "generator": generator, **options}
    label += f"; rows with probabilities {first} and {second} in turn"
    return Case(label, arguments, atol=ATOL)


def _cases(draw: CaseSampler) -> Iterator[Case]:
    size = draw.size(4, 6)
    yield Case("temperature 0", {"logits": draw.normal(3, size), "temperature": 0.0})
    few = {"top_k": draw.integer(2, 3), "top_p": 0.9}
    yield Case("one row, temperature 0", {"logits": draw.normal(1, size), "temperature": 0.0})
    yield Case("temperature 0, filters", {"logits": draw.normal(2, size), "temperature": 0, **few})
    logits, generator = draw.normal(9, 3), Spec("generator", {"seed": draw.seed})
    yield Case("top_k of 1", {"logits": logits, "top_k": 1, "generator": generator})
    yield Case("a tiny top_p", {"logits": logits, "top_p": 0.01, "generator": generator})
    a, b = [0.1, 0.6, 0.3], [0.7, 0.05, 0.25]
    yield (plain := _many("no filter", draw, a, b))
    seed = plain.arguments["generator"].options["seed"] + 1
    arguments = plain.arguments | {"generator": Spec("watched_generator", {"seed": seed})}
    yield replace(plain, label=f"{plain.label}, another seed", arguments=arguments)
    yield _many("every argument at its default", draw, a, b, generator=Spec("no_generator"))
    yield _many("a low temperature", draw, a, [0.4, 0.2, 0.4], temperature=0.4)
    yield _many("a high temperature", draw, [0.02, 0.9, 0.08], [0.88, 0.06, 0.06], temperature=3.0)
    even = [0.25, 0.235, 0.27, 0.245], [0.235, 0.27, 0.245, 0.25]
    yield _many("top_k of 2, nearly even logits", draw, *even, top_k=2)
    c, d = [0.25, 0.3, 0.1, 0.35], [0.3, 0.05, 0.4, 0.25]
    yield _many("top_k of 2", draw, c, d, top_k=2)
    yield _many("top_k larger than the vocabulary", draw, c, d, top_k=9)
    e, f = [0.22, 0.5, 0.04, 0.24], [0.35, 0.05, 0.4, 0.2]
    # With this constant the sum of the largest logits passes 0.6 earlier than that of the probs.
    yield _many("top_p of 0.6", draw, e, f, constant=1.6, top_p=0.6)
    yield _many("top_p of 1", draw, e, f, top_p=1.0)
    tie = torch.zeros(2 * DRAWS, 2).double()  # probabilities of ½, exactly
    arguments = {"logits": tie, "top_p": 0.5, "generator": Spec("generator", {"seed": draw.seed})}
    yield Case("a token that reaches top_p exactly", arguments, atol=ATOL)
    both = {"top_k": 2, "top_p": 0.55}
    yield _many("top_k of 2, top_p of 0.55", draw, [0.42, 0.3, 0.28], [0.24, 0.46, 0.3], **both)
    three = [0.36, 0.22, 0.2, 0.12, 0.1], [0.1, 0.2, 0.12, 0.36, 0.22]
    yield _many("top_k of 3, top_p of 0.45", draw, *three, top_k=3, top_p=0.45)
    g, h = [0.04, 0.8, 0.16], [0.16, 0.04, 0.8]
    yield _many("top_p of 0.75, high temperature", draw, g, h, temperature=2.0, top_p=0.75)


def _by_gumbel(logits, temperature=1.0, top_k=None, top_p=None, generator=None):
    """The largest of log-prob plus Gumbel noise is a draw from the softmax."""
    if temperature == 0:
        return logits.argmax(-1)
    noise = torch.rand(logits.shape, generator=generator, dtype=logits.dtype)
    weights = filtered(logits, temperature, top_k, top_p)
    return (weights.log() - (-noise.log()).log()).argmax(-1)


def _by_inverse_cdf(logits, temperature=1.0, top_k=None, top_p=None, generator=None):
    if temperature == 0:
        return logits.argmax(-1)
    weights = filtered(logits, temperature, top_k, top_p)
    cumulative = (weights / weights.sum(-1, keepdim=True)).cumsum(-1)
    height = torch.rand(len(logits), 1, generator=generator, dtype=logits.dtype)
    return (cumulative <= height).sum(-1).clamp(max=logits.shape[-1] - 1)


def _by_rows(logits, temperature=1.0, top_k=None, top_p=None, generator=None):
    """A loop over rows, with Python's own sort."""
    if temperature == 0:
        return torch.stack([row.argmax() for row in logits])
    tokens = []
    for probs in (logits / temperature).softmax(-1).tolist():
        ranked = sorted(range(len(probs)), key=lambda i: -probs[i])[:top_k]
        total = sum(probs[i] for i in ranked)
        kept, mass = [], 0.0
        for i in ranked:
            kept.append(i)
            mass += probs[i] / total
            if top_p is not None and mass >= top_p:
                break
        weights = torch.tensor([probs[i] for i in kept])
        tokens.append(kept[torch.multinomial(weights, 1, generator=generator).item()])
    return torch.tensor(tokens)


EXERCISE = Exercise(
    reference=sample_tokens,
    lesson="01_policies",
    section="Sampling: draw the next token",
    points=3,
    difficulty=3,
    minutes=12,
    cases=_cases,
    observe=frequencies,
    mistakes=MISTAKES,
    alternatives=(_by_gumbel, _by_inverse_cdf, _by_rows),
    hints=(
        "Begin without filters: temperature 0 is an argmax, otherwise divide, softmax, and "
        "`torch.multinomial`. Then a filter is one step that sets some logits to −∞.",
        "top_k: find the k-th largest logit of each row, and fill everything below it. top_p: "
        "sort, softmax, cumulative sum; a token stays if the probability *before* it is below p; "
        "then put the sorted logits back in their places.",
        "The nucleus, row by row in one go:\n\n"
        "    ordered, order = logits.sort(descending=True)\n"
        "    probs = ordered.softmax(dim=-1)\n"
        "    mass_before = probs.cumsum(dim=-1) - probs\n"
        "    ordered = ordered.masked_fill(mass_before >= top_p, -torch.inf)\n"
        "    logits = torch.zeros_like(logits).scatter(-1, order, ...)",
    ),
)
