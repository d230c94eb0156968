"""How much likelier a sample is under the new policy than under the one that drew it."""

from collections.abc import Iterator
from dataclasses import replace

import torch
from torch import Tensor

from rlcourse.algorithms.importance_sampling import importance_weights
from rlcourse.checks.calling import Case
from rlcourse.checks.cases import CaseSampler, tensor
from rlcourse.checks.exercise import Exercise, Mistake


def _cases(draw: CaseSampler) -> Iterator[Case]:
    def case(label: str, logprobs: Tensor, old: Tensor, mask: Tensor, level: str | None) -> Case:
        arguments = {"logprobs": logprobs, "old_logprobs": old, "mask": mask}
        return Case(label, arguments | ({"level": level} if level else {}))

    worked = tensor([[0.7, 0.1]]).log(), tensor([[0.5, 0.3]]).log(), torch.ones(1, 2) > 0
    yield case("worked: 0.7 for 0.5 and 0.1 for 0.3", *worked, "token")
    yield case("worked: the same, as one completion", *worked, "sequence")
    for label, logprobs, mask in draw.batches():
        old = draw.logprobs(*logprobs.shape).to(logprobs.dtype)
        for level in ("token", "sequence"):
            yield case(f"{label}, {level}", logprobs, old, mask, level)
    rows, tokens = draw.shape()
    mask = draw.mask(rows, tokens)
    logprobs = draw.logprobs(rows, tokens)
    yield case("no level given", logprobs, draw.logprobs(rows, tokens), mask, None)
    yield case("the same policy", logprobs, logprobs.clone(), mask, "token")
    # 400 tokens at e^-3 are 10^-521: a product of probabilities is 0, a sum of logs is not.
    long = -3 + 0.1 * draw.normal(2, 400)
    near = long + 0.01 * draw.normal(2, 400)
    rare = (draw.logprobs(2, 3) - 110).float()
    likelier = (rare + 0.3 * draw.normal(2, 3)).float()
    for level in ("token", "sequence"):
        label = f"tokens of probability e⁻¹¹⁰, float32, {level}"
        yield case(label, likelier, rare, torch.ones(2, 3) > 0, level)
    # Bounds of 30 and less show in the first; in the second only on the sum of a completion.
    apart = draw.logprobs(2, 2) - 40
    far = 35 * tensor([[1.0, -1.0], [0.9, -0.9]])
    yield case("log-ratios of ±35, token", apart + far, apart, torch.ones(2, 2) > 0, "token")
    apart = draw.logprobs(2, 14) - 5
    far = 2.5 * tensor([[1.0], [-1.0]]).expand(2, 14)
    label = "log-ratios of ±35 in all, sequence"
    yield case(label, apart + far, apart, torch.ones(2, 14) > 0, "sequence")
    yield case("400 tokens", near, long, torch.ones(2, 400) > 0, "sequence")
    mask = draw.mask(2, 3)
    rare = draw.logprobs(2, 3).masked_fill(~mask, -200).float()
    for level in ("token", "sequence"):
        label = f"padding of log-prob −200, float32, {level}"
        yield case(label, draw.logprobs(2, 3).float(), rare, mask, level)
    unknown = case("a level that does not exist", *worked, "word")
    yield replace(unknown, raises=True)


def _strict(implementation, default="token"):
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


def _by_loop(logprobs, old_logprobs, mask, level="token"):
    old, rows = old_logprobs.detach(), []
    for new_row, old_row, kept in zip(logprobs, old, mask, strict=True):
        kept = kept.bool()
        log_ratio = new_row[kept] - old_row[kept]
        if level == "sequence":
            rows.append(log_ratio.sum().exp() if kept.any() else new_row.new_zeros(()))
        else:
            padding = new_row.new_zeros(len(kept) - len(log_ratio))
            rows.append(torch.cat([log_ratio.exp(), padding]))  # right-padded
    return torch.stack(rows)


def _by_where(logprobs, old_logprobs, mask, level="token"):
    kept = mask > 0
    log_ratio = torch.where(kept, logprobs - old_logprobs.detach(), 0.0)
    ratio = torch.where(kept, log_ratio.exp(), 0.0)
    if level == "token":
        return ratio
    product = torch.where(kept, ratio, 1.0).prod(dim=-1)  # ratios near 1 do not underflow
    return torch.where(kept.any(dim=-1), product, 0.0)


EXERCISE = Exercise(
    reference=importance_weights,
    lesson="04_importance_sampling",
    section="The ratio of a token, and of a completion",
    points=3,
    difficulty=2,
    minutes=8,
    differentiable=("logprobs",),
    constants=("old_logprobs",),
    cases=_cases,
    mistakes=(
        Mistake(
            "the ratio upside down, πold/πθ",
            _strict(_swapped),
            "A sample that has become likelier must count more: the new policy stands above.",
        ),
        Mistake(
            "weights that count padding",
            _strict(_unmasked),
            "What stands after the end of a completion was never sampled: mask the log-ratio "
            "before the exponential and the weight after it.",
        ),
        Mistake(
            "a weight of 1 for padding and for empty completions",
            _strict(_padding_weighs_one),
            "e⁰ = 1: a masked log-ratio still gives a weight; set it to 0 after the exponential.",
        ),
        Mistake(
            "a product of probabilities, which underflows",
            _strict(_product_of_probabilities),
            "400 tokens of probability 0.05 multiply to 0, and 0/0 is not a number: sum log-ratios "
            "and take the exponential once.",
            telling=2,
        ),
        Mistake(
            "quotients of probabilities, which underflow",
            _strict(_quotient_of_probabilities),
            "exp(−110) is 0 in float32 and 0/0 is not a number: subtract the log-probs first, then "
            "take the exponential.",
            telling=2,
        ),
        Mistake(
            "an exponential of whatever padding holds, infinite times 0",
            _strict(_padding_overflows),
            "Padding may hold any number: where its exponential is infinite, ∞ · 0 is NaN. Set the "
            "log-ratio to 0 there before the exponential, and the weight after it.",
            telling=1,
        ),
        *(
            Mistake(
                f"weights whose log-ratio is held within ±{bound}{where}",
                _strict(_held_within(bound, **parts)),
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
            _strict(_old_not_detached),
            "The old policy is a fact of the past: use `old_logprobs.detach()`.",
        ),
        Mistake(
            "token weights whatever `level` says",
            _strict(_as_level("token")),
            'With level="sequence" a completion has one weight, (N,).',
        ),
        Mistake(
            "completion weights whatever `level` says",
            _strict(_as_level("sequence")),
            'With level="token" every token has its own weight, (N, T).',
        ),
        Mistake(
            "completion weights where no level is given",
            _strict(_by_default_sequence, default="sequence"),
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
            _strict(_aggregated(_geometric)),
            "The probability of a completion is a product, so its log-ratio is the *sum* over its "
            "tokens. (The mean has its use in lesson 07, but it is no importance weight.)",
        ),
        Mistake(
            "the exponential of the mean log-ratio over all positions, padding included",
            _strict(_aggregated(_geometric_with_padding)),
            "The probability of a completion is a product, so its log-ratio is the *sum* over its "
            "tokens, and no length enters.",
        ),
        Mistake(
            "the mean of a completion's token ratios",
            _strict(_aggregated(_arithmetic)),
            "Ratios of independent choices multiply: sum the log-ratios, then exp.",
        ),
        Mistake(
            "the sum of a completion's token ratios",
            _strict(_aggregated(_summed)),
            "The exponential comes after the sum: exp of a sum is a product, a sum of exps is not.",
        ),
        Mistake(
            "a product that one padded token makes 0",
            _strict(_zeroed_by_padding),
            "Padding weighs 0 as a token, but in a product it must count as 1: sum the masked "
            "log-ratios and take exp of the sum.",
        ),
        Mistake(
            "the logarithm of the ratio",
            _strict(_log_only),
            "A difference of log-probs is the log of the ratio: take exp.",
        ),
        Mistake(
            "a ratio of log-probs",
            _strict(_ratio_of_logprobs),
            "The ratio of probabilities is exp of the *difference* of their logarithms.",
        ),
        Mistake(
            "the ratio of the whole prefix at each token",
            _strict(_cumulative),
            "A token's weight is its own ratio; the product up to it is another estimator.",
        ),
        Mistake(
            "weights cut off at 1.2",
            _strict(_clipped),
            "Clipping is PPO's idea and comes in lesson 05; these are the plain ratios.",
        ),
        Mistake(
            "weights that no gradient leaves",
            _strict(_cut_off),
            "The ratio itself carries the gradient of the loss: only the old log-probs are "
            "detached.",
        ),
    ),
    alternatives=(_strict(_by_loop), _strict(_by_where)),
    hints=(
        "A ratio of probabilities is exp of a difference of log-probs. What must padding weigh, "
        "and what does exp make of a masked 0?",
        "Log-ratio first, 0 on padding. For tokens exp of it, and 0 on padding again. For "
        "completions sum it over the tokens, then exp, and 0 where the row is empty.",
        "With the reference's steps:\n\n"
        "    log_ratio = (logprobs - old_logprobs.detach()).masked_fill(~mask.bool(), 0)\n"
        '    if level == "token":\n'
        "        return log_ratio.exp().masked_fill(..., 0)\n"
        '    if level == "sequence":\n'
        "        return log_ratio.sum(dim=1).exp().masked_fill(~mask.bool().any(dim=1), 0)\n"
        '    raise ValueError("...")',
    ),
)
