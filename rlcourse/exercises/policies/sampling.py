"""Drawing the next token. Draws are random, so frequencies over many equal rows are compared."""

from collections.abc import Iterator

import torch
from torch import Tensor

from rlcourse.algorithms.policies import sample_tokens
from rlcourse.exercises.calling import Case
from rlcourse.exercises.cases import Draw, tensor
from rlcourse.exercises.exercise import Exercise, Mistake
from rlcourse.exercises.specs import Spec

DRAWS = 1000  # of each of the two distributions of a random case
ATOL = 0.13  # between two such frequencies: at least 5.8 standard errors


def frequencies(case: Case, tokens: Tensor) -> Tensor | dict[str, bool]:
    """How often each token was drawn, (2, V). Small cases leave no choice but the likeliest."""
    logits = case.arguments["logits"]
    if len(logits) < 2 * DRAWS:
        return {"the likeliest token in every row": torch.equal(tokens, logits.argmax(-1))}
    counts = torch.nn.functional.one_hot(tokens.clamp(0, logits.shape[1] - 1), logits.shape[1])
    return counts.view(DRAWS, 2, -1).double().mean(0)


def _many(label: str, draw: Draw, first: list[float], second: list[float], **options) -> Case:
    """DRAWS rows of each distribution, in turn. Logits are log-probs plus any constant."""
    logits = tensor([first, second]).log() + draw.normal(2, 1)
    generator = Spec("generator", {"seed": draw.integer(0, 10_000)})
    arguments = {"logits": logits.repeat(DRAWS, 1), **options, "generator": generator}
    return Case(label, arguments, atol=ATOL)


def _cases(draw: Draw) -> Iterator[Case]:
    size = draw.size(4, 6)
    yield Case("temperature 0", {"logits": draw.normal(3, size), "temperature": 0.0})
    few = {"top_k": draw.integer(2, 3), "top_p": 0.9}
    yield Case("one row, temperature 0", {"logits": draw.normal(1, size), "temperature": 0.0})
    yield Case("temperature 0, filters", {"logits": draw.normal(2, size), "temperature": 0, **few})
    logits, generator = draw.normal(9, size), Spec("generator", {"seed": draw.seed})
    yield Case("top_k of 1", {"logits": logits, "top_k": 1, "generator": generator})
    yield Case("a tiny top_p", {"logits": logits, "top_p": 0.01, "generator": generator})
    a, b = [0.1, 0.6, 0.3], [0.7, 0.05, 0.25]
    yield _many("every argument at its default", draw, a, b)
    yield _many("a low temperature", draw, a, [0.4, 0.2, 0.4], temperature=0.4)
    yield _many("a high temperature", draw, [0.02, 0.9, 0.08], [0.88, 0.06, 0.06], temperature=3.0)
    c, d = [0.25, 0.3, 0.1, 0.35], [0.3, 0.05, 0.4, 0.25]
    yield _many("top_k of 2", draw, c, d, top_k=2)
    yield _many("top_k larger than the vocabulary", draw, c, d, top_k=9)
    e, f = [0.22, 0.5, 0.04, 0.24], [0.35, 0.05, 0.4, 0.2]
    yield _many("top_p of 0.6", draw, e, f, top_p=0.6)
    yield _many("top_p of 1", draw, e, f, top_p=1.0)
    both = {"top_k": 2, "top_p": 0.55}
    yield _many("top_k of 2, top_p of 0.55", draw, [0.42, 0.3, 0.28], [0.24, 0.46, 0.3], **both)
    g, h = [0.04, 0.8, 0.16], [0.16, 0.04, 0.8]
    yield _many("top_p of 0.75, high temperature", draw, g, h, temperature=2.0, top_p=0.75)


def _filtered(logits: Tensor, temperature, top_k, top_p, keep_crossing=True) -> Tensor:
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


def _draw(weights: Tensor, generator) -> Tensor:
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


def _no_greedy(logits, temperature=1.0, top_k=None, top_p=None, generator=None):
    return _draw(_filtered(logits, temperature, top_k, top_p), generator)


def _drops_crossing(logits, temperature=1.0, top_k=None, top_p=None, generator=None):
    if temperature == 0:
        return logits.argmax(-1)
    weights = _filtered(logits, temperature, top_k, top_p, keep_crossing=False)
    best = torch.nn.functional.one_hot(logits.argmax(-1), logits.shape[-1])
    return _draw(torch.where(weights.sum(-1, keepdim=True) > 0, weights, best.double()), generator)


def _drops_everything(logits, temperature=1.0, top_k=None, top_p=None, generator=None):
    if temperature == 0:
        return logits.argmax(-1)
    weights = _filtered(logits, temperature, top_k, top_p, keep_crossing=False)
    return _draw(weights / weights.sum(-1, keepdim=True), generator)


def _not_renormalized(logits, temperature=1.0, top_k=None, top_p=None, generator=None):
    if temperature == 0:
        return logits.argmax(-1)
    cumulative = _filtered(logits, temperature, top_k, top_p).cumsum(-1)
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


def _zeros(logits, temperature=1.0, top_k=None, top_p=None, generator=None):
    if temperature == 0:
        return logits.argmax(-1)
    kept = _filtered(logits, temperature, top_k, top_p) > 0
    return _draw(((logits / temperature) * kept).softmax(-1), generator)


def _unlikeliest(logits, temperature=1.0, top_k=None, top_p=None, generator=None):
    if temperature == 0 or top_k is None:
        return sample_tokens(logits, temperature, None, top_p, generator)
    kth = logits.topk(min(top_k, logits.shape[-1]), largest=False).values[:, -1:]
    kept = logits.masked_fill(logits > kth, -torch.inf)
    return sample_tokens(kept, temperature, None, top_p, generator)


def _top_p_first(logits, temperature=1.0, top_k=None, top_p=None, generator=None):
    if temperature == 0:
        return logits.argmax(-1)
    kept = _filtered(logits, 1.0, top_k, top_p) > 0
    return sample_tokens(logits.masked_fill(~kept, -torch.inf), temperature, generator=generator)


def _nucleus_of_everything(logits, temperature=1.0, top_k=None, top_p=None, generator=None):
    if temperature == 0:
        return logits.argmax(-1)
    nucleus = _filtered(logits, temperature, None, top_p) > 0
    return _draw(_filtered(logits, temperature, top_k, None) * nucleus, generator)


def _sorted_space(logits, temperature=1.0, top_k=None, top_p=None, generator=None):
    if temperature == 0 or top_p is None:
        return sample_tokens(logits, temperature, top_k, None, generator)
    ordered = logits.sort(descending=True).values
    return sample_tokens(ordered, temperature, top_k, top_p, generator)


def _flattened(logits, temperature=1.0, top_k=None, top_p=None, generator=None):
    if temperature == 0:
        return logits.argmax(-1)
    kept = _filtered(logits, temperature, top_k, top_p) > 0
    return _draw(kept.double(), generator)


def _in_place(logits, temperature=1.0, top_k=None, top_p=None, generator=None):
    result = sample_tokens(logits, temperature, top_k, top_p, generator)
    if temperature != 0:
        logits /= temperature
        logits.masked_fill_(_filtered(logits, 1.0, top_k, top_p) == 0, -torch.inf)
    return result


def _by_gumbel(logits, temperature=1.0, top_k=None, top_p=None, generator=None):
    """The largest of log-prob plus Gumbel noise is a draw from the softmax."""
    if temperature == 0:
        return logits.argmax(-1)
    noise = torch.rand(logits.shape, generator=generator, dtype=logits.dtype)
    weights = _filtered(logits, temperature, top_k, top_p)
    return (weights.log() - (-noise.log()).log()).argmax(-1)


def _by_inverse_cdf(logits, temperature=1.0, top_k=None, top_p=None, generator=None):
    if temperature == 0:
        return logits.argmax(-1)
    weights = _filtered(logits, temperature, top_k, top_p)
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


SAMPLE_TOKENS = Exercise(
    reference=sample_tokens,
    lesson="01_policies",
    section="Sampling: draw the next token",
    points=3,
    difficulty=3,
    minutes=12,
    cases=_cases,
    observe=frequencies,
    mistakes=(
        Mistake(
            "logits multiplied by the temperature",
            _multiplies,
            "A high temperature must flatten the distribution, so it divides the logits.",
        ),
        Mistake(
            "the likeliest token every time",
            _always_greedy,
            "That is greedy decoding, right at temperature 0 only: a policy that never varies "
            "never explores.",
        ),
        Mistake(
            "a draw that leaves the temperature out",
            _no_temperature,
            "The temperature divides the logits before everything else.",
        ),
        Mistake(
            "a division by a temperature of 0",
            _no_greedy,
            "0/0 is NaN: temperature 0 is the limit in which only the likeliest token is left, "
            "and needs a line of its own.",
        ),
        Mistake(
            "a top-p filter without the token that crosses the threshold",
            _drops_crossing,
            "The kept tokens must *reach* p together: keep a token as long as the probability "
            "before it is below p.",
        ),
        Mistake(
            "a top-p filter that drops the token which crosses, and sometimes all of them",
            _drops_everything,
            "When the likeliest token alone has more than p, nothing is left and the softmax is "
            "NaN: keep a token as long as the probability before it is below p.",
        ),
        Mistake(
            "filtered probabilities that no longer sum to 1",
            _not_renormalized,
            "What the filter takes away must be shared out among the tokens that stay; setting "
            "logits to −∞ before the softmax does so by itself.",
        ),
        Mistake(
            "draws that ignore the generator",
            _ignores_generator,
            "Only draws from `generator` can be repeated: hand it to `torch.multinomial`.",
        ),
        Mistake(
            "draws without any filter",
            _no_filters,
            "top_k and top_p each take some tokens out of the draw; both are None by default.",
        ),
        Mistake(
            "logits set to 0 where −∞ is meant",
            _zeros,
            "A logit of 0 is a token like any other, with weight e⁰ = 1; only −∞ has weight 0.",
        ),
        Mistake(
            "a draw that ignores top_k",
            _no_top_k,
            "Tokens outside the k likeliest must get probability 0.",
        ),
        Mistake(
            "a draw that ignores top_p",
            _no_top_p,
            "Tokens outside the nucleus must get probability 0.",
        ),
        Mistake(
            "a filter that keeps the k unlikeliest tokens",
            _unlikeliest,
            "top_k keeps the largest logits; the tail is what it removes.",
        ),
        Mistake(
            "filters that look at the distribution before the temperature",
            _top_p_first,
            "The policy is the softmax at this temperature, and the nucleus is taken from that.",
        ),
        Mistake(
            "a nucleus of the whole distribution where top_k has cut it first",
            _nucleus_of_everything,
            "The order is temperature, top_k, top_p: the nucleus has probability p among the "
            "tokens that top_k left.",
        ),
        Mistake(
            "ranks in the sorted order, taken for token ids",
            _sorted_space,
            "After sorting, place 0 is the likeliest token, whatever its id: scatter back by "
            "the order that `sort` returns.",
        ),
        Mistake(
            "a uniform draw among the tokens that are kept",
            _flattened,
            "Among the tokens that stay, the proportions remain what they were.",
        ),
        Mistake(
            "a draw that leaves its argument filtered",
            _in_place,
            "`logits /= …` and assignments such as `logits[…] = …` change the caller's tensor, "
            "who still wants to score with it: make a new one.",
        ),
    ),
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
