"""How drawing the next token goes wrong."""

import torch
from torch import Tensor

from rlcourse.algorithms.policies import sample_tokens
from rlcourse.checks.exercise import Mistake


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


MISTAKES = (
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
        telling=2,
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
        "draws from a generator that is seeded anew in every call",
        _reseeded,
        "Every call would begin with the same random numbers: hand `generator` itself to "
        "`torch.multinomial`, which moves it on.",
    ),
    Mistake(
        "draws that ignore the generator",
        _ignores_generator,
        "Only draws from `generator` can be repeated: hand it to `torch.multinomial`.",
    ),
    Mistake(
        "draws that are the same in every call if no generator is given",
        _always_the_same,
        "A trainer without a generator would see the same draws for ever: None means torch's "
        "own generator, whose state nobody has set.",
        telling=1,
    ),
    Mistake(
        "draws after a `torch.manual_seed` of one's own, the same in every call",
        _never_varies,
        "That resets the random numbers of the whole program, and every call begins with the "
        "same ones: only whoever calls may seed.",
    ),
    Mistake(
        "draws that are the same whatever the seed",
        _one_seed,
        "A generator of one's own makes one and the same choice for ever; what is drawn must "
        "follow from the state of `generator`.",
    ),
    Mistake(
        "one random number for all rows, at even distances",
        _one_draw_for_all,
        "Each token comes as often as it should, but neighboring rows draw alike: every row needs "
        "a random number of its own.",
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
        "a top_k filter that keeps k + 1 tokens",
        _one_more,
        "The k-th largest logit is at place k − 1 of the sorted ones, and `topk(k)` returns "
        "exactly k: keep what is not below the last of them.",
    ),
    Mistake(
        "a draw that ignores top_p where top_k is given",
        _one_filter,
        "Both filters may be given, and then both apply: a second `if`, not an `elif`.",
        telling=2,
    ),
    Mistake(
        "a nucleus that goes on after p is reached exactly",
        _beyond_reach,
        "Two tokens of ½ and p = ½: the first *reaches* p alone. Remove a token whose "
        "probability before it is ≥ p, not only those where it is > p.",
        telling=1,
    ),
    Mistake(
        "a top_k that must not be larger than the vocabulary",
        _too_many_asked,
        "If there are no more than k tokens, all of them stay: `min(top_k, V)`.",
        telling=1,
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
        telling=1,
    ),
    Mistake(
        "a nucleus of the whole distribution where top_k has cut it first",
        _nucleus_of_everything,
        "The order is temperature, top_k, top_p: the nucleus has probability p among the "
        "tokens that top_k left.",
        telling=2,
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
    Mistake(
        "a top-p whose mask was not put back into the order of the tokens",
        _mask_in_sorted_order,
        "The mask says which *ranks* go, and the logits are in the order of token ids: `scatter` "
        "it back with the indices that `sort` returned.",
    ),
)
