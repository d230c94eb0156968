"""Drawing the next token. Draws are random, so frequencies over many equal rows are compared."""

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor

from rlcourse.algorithms.policies import sample_tokens
from rlcourse.checks.declaring import Case, CaseSampler, Spec, tensor

DRAWS = 1000  # of each of the two distributions of a random case


LAGS = 8


ATOL = 0.13  # between two such frequencies: at least 5.8 standard errors


def frequencies(case: Case, tokens: Tensor) -> dict[str, Any]:
    """What is known of many draws: how often each token came, and how often as k rows before.

    (2, V), (2 LAGS,), and whether all are tokens. Rows that know nothing of each other are alike as
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
    return {
        "how often each token is drawn": shares,
        "how often a row draws what a row shortly before drew": meetings,
        "all are tokens": torch.equal(known, tokens),
    }


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


def cases(draw: CaseSampler) -> Iterator[Case]:
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
    cold = _many("a tiny temperature for tiny logits", draw, a, b)
    tiny = {"logits": 1e-4 * cold.arguments["logits"], "temperature": 1e-4}
    yield replace(cold, arguments=cold.arguments | tiny)
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
    # The first row keeps one token and the second two, or the other way round.
    uneven = [0.2, 0.68, 0.12], [0.38, 0.24, 0.38]
    first, second = uneven if draw.integer(0, 1) else uneven[::-1]
    yield _many("top_p of 0.6, of uneven rows", draw, first, second, top_p=0.6)


def _by_gumbel(logits, temperature=1.0, top_k=None, top_p=None, generator=None):
    """The largest of log-prob plus Gumbel noise is a draw from the softmax."""
    if temperature == 0:
        return logits.argmax(-1)
    noise = torch.rand(logits.shape, generator=generator, dtype=logits.dtype)
    weights = filtered(logits, temperature, top_k, top_p)
    return (weights.log() - (-noise.log()).log()).argmax(-1)


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


def filtered(logits: Tensor, temperature, top_k, top_p, keep_crossing=True) -> Tensor:
    """Probabilities after every filter, not normalized; the wrong ones are made from it."""
    probs = (logits / temperature).softmax(-1)
    weights = probs
    if top_k is not None:
        kth = probs.topk(min(top_k, probs.shape[-1])).values[:, -1:]
        weights = weights * (probs >= kth)
    if top_p is not None:
        share = weights / weights.sum(-1, keepdim=True)
        ordered, order = share.sort(descending=True)
        mass = ordered.cumsum(-1) - ordered * keep_crossing
        kept = (mass < top_p) if keep_crossing else (mass <= top_p + 1e-12)
        weights = weights * torch.zeros_like(kept).scatter(-1, order, kept)
    return weights


def draw_from(weights: Tensor, generator) -> Tensor:
    return torch.multinomial(weights, 1, generator=generator).squeeze(-1)


def _multiplies(logits, temperature=1.0, top_k=None, top_p=None, generator=None):
    if temperature == 0:
        return logits.argmax(-1)
    return sample_tokens(logits, 1 / temperature, top_k, top_p, generator)


def _always_greedy(logits, temperature=1.0, top_k=None, top_p=None, generator=None):
    return logits.argmax(-1)


def _no_temperature(logits, temperature=1.0, top_k=None, top_p=None, generator=None):
    if temperature == 0:
        return logits.argmax(-1)
    return sample_tokens(logits, 1.0, top_k, top_p, generator)


def _soon_greedy(logits, temperature=1.0, top_k=None, top_p=None, generator=None):
    if temperature < 1e-3:
        return logits.argmax(-1)
    return sample_tokens(logits, temperature, top_k, top_p, generator)


def _no_greedy(logits, temperature=1.0, top_k=None, top_p=None, generator=None):
    return draw_from(filtered(logits, temperature, top_k, top_p), generator)


def _drops_crossing(logits, temperature=1.0, top_k=None, top_p=None, generator=None):
    if temperature == 0:
        return logits.argmax(-1)
    weights = filtered(logits, temperature, top_k, top_p, keep_crossing=False)
    best = torch.nn.functional.one_hot(logits.argmax(-1), logits.shape[-1])
    return draw_from(
        torch.where(weights.sum(-1, keepdim=True) > 0, weights, best.double()), generator
    )


def _drops_everything(logits, temperature=1.0, top_k=None, top_p=None, generator=None):
    if temperature == 0:
        return logits.argmax(-1)
    weights = filtered(logits, temperature, top_k, top_p, keep_crossing=False)
    return draw_from(weights / weights.sum(-1, keepdim=True), generator)


def _not_renormalized(logits, temperature=1.0, top_k=None, top_p=None, generator=None):
    if temperature == 0:
        return logits.argmax(-1)
    cumulative = filtered(logits, temperature, top_k, top_p).cumsum(-1)
    height = torch.rand(len(logits), 1, generator=generator, dtype=logits.dtype)
    return (cumulative < height).sum(-1).clamp(max=logits.shape[-1] - 1)


def _ignores_generator(logits, temperature=1.0, top_k=None, top_p=None, generator=None):
    return sample_tokens(logits, temperature, top_k, top_p)


def _no_top_k(logits, temperature=1.0, top_k=None, top_p=None, generator=None):
    return sample_tokens(logits, temperature, None, top_p, generator)


def _no_top_p(logits, temperature=1.0, top_k=None, top_p=None, generator=None):
    return sample_tokens(logits, temperature, top_k, None, generator)


def _no_filters(logits, temperature=1.0, top_k=None, top_p=None, generator=None):
    return sample_tokens(logits, temperature, generator=generator)


def _reseeded(logits, temperature=1.0, top_k=None, top_p=None, generator=None):
    if generator is not None:
        generator = torch.Generator().manual_seed(generator.initial_seed())
    return sample_tokens(logits, temperature, top_k, top_p, generator)


def _always_the_same(logits, temperature=1.0, top_k=None, top_p=None, generator=None):
    if generator is None:
        generator = torch.Generator().manual_seed(0)
    return sample_tokens(logits, temperature, top_k, top_p, generator)


def _never_varies(logits, temperature=1.0, top_k=None, top_p=None, generator=None):
    torch.manual_seed(0 if generator is None else generator.initial_seed())
    return sample_tokens(logits, temperature, top_k, top_p)


def _one_seed(logits, temperature=1.0, top_k=None, top_p=None, generator=None):
    torch.rand(1, generator=generator)
    own = torch.Generator().manual_seed(0)
    return sample_tokens(logits, temperature, top_k, top_p, own)


def _one_draw_for_all(logits, temperature=1.0, top_k=None, top_p=None, generator=None):
    if temperature == 0:
        return logits.argmax(-1)
    weights = filtered(logits, temperature, top_k, top_p)
    cumulative = (weights / weights.sum(-1, keepdim=True)).cumsum(-1)
    first = torch.rand(1, generator=generator, dtype=logits.dtype)
    height = (first + torch.arange(len(logits)) / len(logits)) % 1
    return (cumulative <= height[:, None]).sum(-1).clamp(max=logits.shape[-1] - 1)


def _one_more(logits, temperature=1.0, top_k=None, top_p=None, generator=None):
    return sample_tokens(logits, temperature, top_k and top_k + 1, top_p, generator)


def _one_filter(logits, temperature=1.0, top_k=None, top_p=None, generator=None):
    return sample_tokens(logits, temperature, top_k, None if top_k else top_p, generator)


def _beyond_reach(logits, temperature=1.0, top_k=None, top_p=None, generator=None):
    if top_p is not None:
        top_p += 1e-9
    return sample_tokens(logits, temperature, top_k, top_p, generator)


def _too_many_asked(logits, temperature=1.0, top_k=None, top_p=None, generator=None):
    if temperature != 0 and top_k is not None:
        logits.topk(top_k)
    return sample_tokens(logits, temperature, top_k, top_p, generator)


def _zeros(logits, temperature=1.0, top_k=None, top_p=None, generator=None):
    if temperature == 0:
        return logits.argmax(-1)
    kept = filtered(logits, temperature, top_k, top_p) > 0
    return draw_from(((logits / temperature) * kept).softmax(-1), generator)


def _unlikeliest(logits, temperature=1.0, top_k=None, top_p=None, generator=None):
    if temperature == 0 or top_k is None:
        return sample_tokens(logits, temperature, None, top_p, generator)
    kth = logits.topk(min(top_k, logits.shape[-1]), largest=False).values[:, -1:]
    kept = logits.masked_fill(logits > kth, -torch.inf)
    return sample_tokens(kept, temperature, None, top_p, generator)


def _top_p_first(logits, temperature=1.0, top_k=None, top_p=None, generator=None):
    if temperature == 0:
        return logits.argmax(-1)
    kept = filtered(logits, 1.0, top_k, top_p) > 0
    return sample_tokens(logits.masked_fill(~kept, -torch.inf), temperature, generator=generator)


def _nucleus_of_everything(logits, temperature=1.0, top_k=None, top_p=None, generator=None):
    if temperature == 0:
        return logits.argmax(-1)
    nucleus = filtered(logits, temperature, None, top_p) > 0
    return draw_from(filtered(logits, temperature, top_k, None) * nucleus, generator)


def _sorted_space(logits, temperature=1.0, top_k=None, top_p=None, generator=None):
    if temperature == 0 or top_p is None:
        return sample_tokens(logits, temperature, top_k, None, generator)
    ordered = logits.sort(descending=True).values
    return sample_tokens(ordered, temperature, top_k, top_p, generator)


def _ranks(where):
    def sample(logits, temperature=1.0, top_k=None, top_p=None, generator=None):
        if temperature != 0 and where(top_k, top_p):
            logits = logits.sort(descending=True).values
        return sample_tokens(logits, temperature, top_k, top_p, generator)

    return sample


def _one_size(of):
    """As many tokens in every row as `of` says, of the rows' own numbers."""

    def sample(logits, temperature=1.0, top_k=None, top_p=None, generator=None):
        if temperature == 0:
            return logits.argmax(-1)
        sizes = (filtered(logits, temperature, top_k, top_p) > 0).sum(-1)
        size = int(of(sizes)) if top_p is not None else None
        weights = filtered(logits, temperature, top_k, None)
        return draw_from(filtered_to(weights, size), generator)

    return sample


def filtered_to(weights, size):
    order = weights.argsort(descending=True)[:, :size]
    return weights * torch.zeros_like(weights).scatter(-1, order, 1.0)


def _flattened(logits, temperature=1.0, top_k=None, top_p=None, generator=None):
    if temperature == 0:
        return logits.argmax(-1)
    kept = filtered(logits, temperature, top_k, top_p) > 0
    return draw_from(kept.double(), generator)


def _in_place(logits, temperature=1.0, top_k=None, top_p=None, generator=None):
    result = sample_tokens(logits, temperature, top_k, top_p, generator)
    if temperature != 0:
        logits /= temperature
        logits.masked_fill_(filtered(logits, 1.0, top_k, top_p) == 0, -torch.inf)
    return result


def _mask_in_sorted_order(logits, temperature=1.0, top_k=None, top_p=None, generator=None):
    """What top-p drops is found in sorted order, and dropped by rank from the logits."""
    if temperature == 0:
        return logits.argmax(-1)
    weights = filtered(logits, temperature, top_k, None)
    if top_p is not None:
        ordered = (weights / weights.sum(-1, keepdim=True)).sort(descending=True).values
        dropped = ordered.cumsum(-1) - ordered >= top_p
        weights = weights.masked_fill(dropped, 0)
    return draw_from(weights, generator)


alternatives = (_by_gumbel, _by_rows)
observe = frequencies
