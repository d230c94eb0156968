"""Ways to get the weights of samples wrong."""

import torch

from rlcourse.algorithms.importance_sampling import importance_weights
from rlcourse.checks.exercise import Mistake


def strict(implementation, default="token"):
    """With the ValueError, so that the mistake is only the one that it is meant to be."""

    def checked(logprobs, old_logprobs, mask, level=default):
        if level not in ("token", "sequence"):
            raise ValueError(level)
        return implementation(logprobs, old_logprobs, mask, level)

    return checked


def _lax(logprobs, old_logprobs, mask, level="token"):
    known = level if level in ("token", "sequence") else "sequence"
    return importance_weights(logprobs, old_logprobs, mask, known)


def _by_lookup(logprobs, old_logprobs, mask, level="token"):
    both = {n: importance_weights(logprobs, old_logprobs, mask, n) for n in ("token", "sequence")}
    return both[level]


def _log_ratio(logprobs, old_logprobs, mask):
    return (logprobs - old_logprobs.detach()).masked_fill(~mask.bool(), 0)


def _swapped(logprobs, old_logprobs, mask, level="token"):
    return importance_weights(-logprobs, -old_logprobs, mask, level)


def _unmasked(logprobs, old_logprobs, mask, level="token"):
    return importance_weights(logprobs, old_logprobs, torch.ones_like(mask), level)


def _padding_weighs_one(logprobs, old_logprobs, mask, level="token"):
    log_ratio = _log_ratio(logprobs, old_logprobs, mask)
    return (log_ratio if level == "token" else log_ratio.sum(1)).exp()


def _product_of_probabilities(logprobs, old_logprobs, mask, level="token"):
    if level == "token":
        return importance_weights(logprobs, old_logprobs, mask)
    kept, empty = mask.bool(), ~mask.bool().any(1)
    new = logprobs.exp().masked_fill(~kept, 1).prod(1)
    old = old_logprobs.detach().exp().masked_fill(~kept, 1).prod(1)
    return (new / old).masked_fill(empty, 0)


def _quotient_of_probabilities(logprobs, old_logprobs, mask, level="token"):
    kept = mask.bool()
    ratio = logprobs.exp() / old_logprobs.detach().exp()
    if level == "token":
        return ratio.masked_fill(~kept, 0)
    return ratio.masked_fill(~kept, 1).prod(1).masked_fill(~kept.any(1), 0)


def _held_within(bound, tokens=True, completions=True):
    def implementation(logprobs, old_logprobs, mask, level="token"):
        kept, log_ratio = mask.bool(), _log_ratio(logprobs, old_logprobs, mask)
        if tokens:
            log_ratio = log_ratio.clamp(-bound, bound)
        if level == "token":
            return log_ratio.exp().masked_fill(~kept, 0)
        total = log_ratio.sum(1)
        total = total.clamp(-bound, bound) if completions else total
        return total.exp().masked_fill(~kept.any(1), 0)

    return implementation


def _old_not_detached(logprobs, old_logprobs, mask, level="token"):
    kept = mask.bool()
    log_ratio = (logprobs - old_logprobs).masked_fill(~kept, 0)
    if level == "token":
        return log_ratio.exp().masked_fill(~kept, 0)
    return log_ratio.sum(1).exp().masked_fill(~kept.any(1), 0)


def _as_level(forced):
    def implementation(logprobs, old_logprobs, mask, level="token"):
        return importance_weights(logprobs, old_logprobs, mask, forced)

    return implementation


def _by_default_sequence(logprobs, old_logprobs, mask, level="sequence"):
    return importance_weights(logprobs, old_logprobs, mask, level)


def _aggregated(aggregate):
    """A completion's weight made from its tokens' log-ratios in another way than their sum."""

    def implementation(logprobs, old_logprobs, mask, level="token"):
        if level == "token":
            return importance_weights(logprobs, old_logprobs, mask)
        kept = mask.bool()
        log_ratio = _log_ratio(logprobs, old_logprobs, mask)
        return aggregate(log_ratio, kept).masked_fill(~kept.any(1), 0)

    return implementation


def _geometric(log_ratio, kept):
    return (log_ratio.sum(1) / kept.sum(1).clamp(min=1)).exp()


def _geometric_with_padding(log_ratio, kept):
    return log_ratio.mean(1).exp()


def _arithmetic(log_ratio, kept):
    return (log_ratio.exp() * kept).sum(1) / kept.sum(1).clamp(min=1)


def _summed(log_ratio, kept):
    return (log_ratio.exp() * kept).sum(1)


def _log_only(logprobs, old_logprobs, mask, level="token"):
    log_ratio = _log_ratio(logprobs, old_logprobs, mask)
    return log_ratio if level == "token" else log_ratio.sum(1)


def _ratio_of_logprobs(logprobs, old_logprobs, mask, level="token"):
    ratio = (logprobs / old_logprobs.detach()).masked_fill(~mask.bool(), 0)
    if level == "token":
        return ratio
    ones = ratio.masked_fill(~mask.bool(), 1).prod(1)
    return ones.masked_fill(~mask.bool().any(1), 0)


def _cumulative(logprobs, old_logprobs, mask, level="token"):
    if level == "sequence":
        return importance_weights(logprobs, old_logprobs, mask, level)
    log_ratio = _log_ratio(logprobs, old_logprobs, mask)
    return log_ratio.cumsum(1).exp().masked_fill(~mask.bool(), 0)


def _clipped(logprobs, old_logprobs, mask, level="token"):
    return importance_weights(logprobs, old_logprobs, mask, level).clamp(max=1.2)


def _cut_off(logprobs, old_logprobs, mask, level="token"):
    return importance_weights(logprobs, old_logprobs, mask, level).detach()


def _zeroed_by_padding(logprobs, old_logprobs, mask, level="token"):
    ratio = importance_weights(logprobs, old_logprobs, mask)
    return ratio if level == "token" else ratio.prod(1)


def _padding_overflows(logprobs, old_logprobs, mask, level="token"):
    ratio = (logprobs - old_logprobs.detach()).exp() * mask
    if level == "token":
        return ratio
    return importance_weights(logprobs, old_logprobs, mask, level) + 0 * ratio.sum(1)


MISTAKES = (
    Mistake(
        "the ratio upside down, πold/πθ",
        strict(_swapped),
        "A sample that has become likelier must count more: the new policy stands above.",
    ),
    Mistake(
        "weights that count padding",
        strict(_unmasked),
        "What stands after the end of a completion was never sampled: mask the log-ratio "
        "before the exponential and the weight after it.",
    ),
    Mistake(
        "a weight of 1 for padding and for empty completions",
        strict(_padding_weighs_one),
        "e⁰ = 1: a masked log-ratio still gives a weight; set it to 0 after the exponential.",
    ),
    Mistake(
        "a product of probabilities, which underflows",
        strict(_product_of_probabilities),
        "400 tokens of probability 0.05 multiply to 0, and 0/0 is not a number: sum log-ratios "
        "and take the exponential once.",
        telling=2,
    ),
    Mistake(
        "quotients of probabilities, which underflow",
        strict(_quotient_of_probabilities),
        "exp(−110) is 0 in float32 and 0/0 is not a number: subtract the log-probs first, then "
        "take the exponential.",
        telling=2,
    ),
    Mistake(
        "an exponential of whatever padding holds, infinite times 0",
        strict(_padding_overflows),
        "Padding may hold any number: where its exponential is infinite, ∞ · 0 is NaN. Set the "
        "log-ratio to 0 there before the exponential, and the weight after it.",
        telling=1,
    ),
    *(
        Mistake(
            f"weights whose log-ratio is held within ±{bound}{where}",
            strict(_held_within(bound, **parts)),
            "Such a bound makes the weights wrong just where they are large, and beyond it no "
            "gradient flows: these are the plain ratios.",
            telling=1,
        )
        for bound in (3, 5, 10, 20, 30)
        for where, parts in (
            ("", {}),
            (", token by token", {"completions": False}),
            (", by the completion", {"tokens": False}),
        )
    ),
    Mistake(
        "weights through which gradient flows into the old log-probs",
        strict(_old_not_detached),
        "The old policy is a fact of the past: use `old_logprobs.detach()`.",
    ),
    Mistake(
        "token weights whatever `level` says",
        strict(_as_level("token")),
        'With level="sequence" a completion has one weight, (N,).',
    ),
    Mistake(
        "completion weights whatever `level` says",
        strict(_as_level("sequence")),
        'With level="token" every token has its own weight, (N, T).',
    ),
    Mistake(
        "completion weights where no level is given",
        strict(_by_default_sequence, default="sequence"),
        'The default is level="token".',
        telling=1,
    ),
    Mistake(
        "weights for a level that does not exist, where a ValueError is asked for",
        _lax,
        'A slip such as level="tokens" would go unseen for a whole training run: raise a '
        "ValueError.",
        telling=1,
    ),
    Mistake(
        "a lookup that raises KeyError for a level that does not exist",
        _by_lookup,
        "An argument with a wrong value is a ValueError, and its message should say which "
        "values there are.",
        telling=1,
    ),
    Mistake(
        "the geometric mean of a completion's token ratios",
        strict(_aggregated(_geometric)),
        "The probability of a completion is a product, so its log-ratio is the *sum* over its "
        "tokens. (The mean has its use in lesson 07, but it is no importance weight.)",
    ),
    Mistake(
        "the exponential of the mean log-ratio over all positions, padding included",
        strict(_aggregated(_geometric_with_padding)),
        "The probability of a completion is a product, so its log-ratio is the *sum* over its "
        "tokens, and no length enters.",
    ),
    Mistake(
        "the mean of a completion's token ratios",
        strict(_aggregated(_arithmetic)),
        "Ratios of independent choices multiply: sum the log-ratios, then exp.",
    ),
    Mistake(
        "the sum of a completion's token ratios",
        strict(_aggregated(_summed)),
        "The exponential comes after the sum: exp of a sum is a product, a sum of exps is not.",
    ),
    Mistake(
        "a product that one padded token makes 0",
        strict(_zeroed_by_padding),
        "Padding weighs 0 as a token, but in a product it must count as 1: sum the masked "
        "log-ratios and take exp of the sum.",
    ),
    Mistake(
        "the logarithm of the ratio",
        strict(_log_only),
        "A difference of log-probs is the log of the ratio: take exp.",
    ),
    Mistake(
        "a ratio of log-probs",
        strict(_ratio_of_logprobs),
        "The ratio of probabilities is exp of the *difference* of their logarithms.",
    ),
    Mistake(
        "the ratio of the whole prefix at each token",
        strict(_cumulative),
        "A token's weight is its own ratio; the product up to it is another estimator.",
    ),
    Mistake(
        "weights cut off at 1.2",
        strict(_clipped),
        "Clipping is PPO's idea and comes in lesson 05; these are the plain ratios.",
    ),
    Mistake(
        "weights that no gradient leaves",
        strict(_cut_off),
        "The ratio itself carries the gradient of the loss: only the old log-probs are detached.",
    ),
)
