"""How much likelier a sample is under the new policy than under the one that drew it."""

from collections.abc import Iterator
from dataclasses import replace
from functools import partial

import torch
from torch import Tensor

from rlcourse.algorithms.importance_sampling import importance_weights
from rlcourse.checks.calling import Case
from rlcourse.checks.cases import CaseSampler, tensor
from rlcourse.checks.exercise import Exercise, Mistake
from rlcourse.checks.sketch import Sketch


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


def by_loop(logprobs, old_logprobs, mask, level="token"):
    if level not in ("token", "sequence"):
        raise ValueError(level)
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


def by_where(logprobs, old_logprobs, mask, level="token"):
    if level not in ("token", "sequence"):
        raise ValueError(level)
    kept = mask > 0
    log_ratio = torch.where(kept, logprobs - old_logprobs.detach(), 0.0)
    ratio = torch.where(kept, log_ratio.exp(), 0.0)
    if level == "token":
        return ratio
    product = torch.where(kept, ratio, 1.0).prod(dim=-1)  # ratios near 1 do not underflow
    return torch.where(kept.any(dim=-1), product, 0.0)


def line_by_line(logprobs, old_logprobs, mask, level="token"):
    if level not in ("token", "sequence"):
        raise ValueError(level)
    kept = mask.bool()
    old = old_logprobs.detach()
    log_ratio = (logprobs - old).masked_fill(~kept, 0)
    if level == "sequence":
        weights = log_ratio.sum(1).exp().masked_fill(~kept.any(1), 0)
    else:
        weights = log_ratio.exp().masked_fill(~kept, 0)
    return weights


def product(logprobs, kept):
    """The probability of each completion, multiplied up."""
    return logprobs.exp().masked_fill(~kept, 1).prod(1)


_edit = Sketch(line_by_line, product).edit
_OF_COMPLETION = "log_ratio.sum(1).exp()"
_of_completion = partial(_edit, "a completion's weight", _OF_COMPLETION)


def _by_token(bound):
    return "(logprobs - old)", f"(logprobs - old).clamp(-{bound}, {bound})"


def _by_completion(bound):
    return _OF_COMPLETION, f"log_ratio.sum(1).clamp(-{bound}, {bound}).exp()"


MISTAKES = (
    Mistake(
        "the ratio upside down, πold/πθ",
        _edit("the ratio", "logprobs - old)", "old - logprobs)"),
        "A sample that has become likelier must count more: the new policy stands above.",
    ),
    Mistake(
        "weights that count padding",
        _edit("the padding", "mask.bool()", "torch.ones_like(mask.bool())"),
        "What stands after the end of a completion was never sampled: mask the log-ratio "
        "before the exponential and the weight after it.",
    ),
    Mistake(
        "a weight of 1 for padding and for empty completions",
        _edit(
            "the padding",
            ".exp().masked_fill(~kept, 0)",
            ".exp()",
            ".masked_fill(~kept.any(1), 0)",
            "",
        ),
        "e⁰ = 1: a masked log-ratio still gives a weight; set it to 0 after the exponential.",
    ),
    Mistake(
        "a product of probabilities, which underflows",
        _of_completion("(product(logprobs, kept) / product(old, kept))"),
        "400 tokens of probability 0.05 multiply to 0, and 0/0 is not a number: sum log-ratios "
        "and take the exponential once.",
        telling=2,
    ),
    Mistake(
        "quotients of probabilities, which underflow",
        _edit("the ratio", "(logprobs - old)", "(logprobs.exp() / old.exp()).log()"),
        "exp(−110) is 0 in float32 and 0/0 is not a number: subtract the log-probs first, then "
        "take the exponential.",
        telling=2,
    ),
    Mistake(
        "an exponential of whatever padding holds, infinite times 0",
        _edit(
            "the padding",
            "log_ratio.exp().masked_fill(~kept, 0)",
            "unmasked",
            "= log_ratio.sum(1).exp()",
            "= 0 * unmasked.sum(1) + log_ratio.sum(1).exp()",
            "old = old_logprobs.detach()",
            "old = old_logprobs.detach()\n    unmasked = (logprobs - old).exp() * mask",
        ),
        "Padding may hold any number: where its exponential is infinite, ∞ · 0 is NaN. Set the "
        "log-ratio to 0 there before the exponential, and the weight after it.",
        telling=1,
    ),
    *(
        Mistake(
            f"weights whose log-ratio is held within ±{bound}{where}",
            _edit("the size", *texts),
            "Such a bound makes the weights wrong just where they are large, and beyond it no "
            "gradient flows: these are the plain ratios.",
            telling=1,
        )
        for bound in (3, 5, 10, 20, 30)
        for where, texts in (
            ("", (*_by_token(bound), *_by_completion(bound))),
            (", token by token", _by_token(bound)),
            (", by the completion", _by_completion(bound)),
        )
    ),
    Mistake(
        "weights through which gradient flows into the old log-probs",
        _edit("the old log-probs", "old_logprobs.detach()", "old_logprobs"),
        "The old policy is a fact of the past: use `old_logprobs.detach()`.",
    ),
    Mistake(
        "token weights whatever `level` says",
        _edit("the level", 'if level == "sequence"', "if False"),
        'With level="sequence" a completion has one weight, (N,).',
    ),
    Mistake(
        "completion weights whatever `level` says",
        _edit("the level", 'if level == "sequence"', "if True"),
        'With level="token" every token has its own weight, (N, T).',
    ),
    Mistake(
        "completion weights where no level is given",
        _edit("the default", 'level="token"', 'level="sequence"'),
        'The default is level="token".',
        telling=1,
    ),
    Mistake(
        "weights for a level that does not exist, where a ValueError is asked for",
        _edit("a level that does not exist", "raise ValueError(level)", "pass"),
        'A slip such as level="tokens" would go unseen for a whole training run: raise a '
        "ValueError.",
        telling=1,
    ),
    Mistake(
        "a lookup that raises KeyError for a level that does not exist",
        _edit("a level that does not exist", "ValueError", "KeyError"),
        "An argument with a wrong value is a ValueError, and its message should say which "
        "values there are.",
        telling=1,
    ),
    Mistake(
        "the geometric mean of a completion's token ratios",
        _of_completion("(log_ratio.sum(1) / kept.sum(1).clamp(min=1)).exp()"),
        "The probability of a completion is a product, so its log-ratio is the *sum* over its "
        "tokens. (The mean has its use in lesson 07, but it is no importance weight.)",
    ),
    Mistake(
        "the exponential of the mean log-ratio over all positions, padding included",
        _of_completion("log_ratio.mean(1).exp()"),
        "The probability of a completion is a product, so its log-ratio is the *sum* over its "
        "tokens, and no length enters.",
    ),
    Mistake(
        "the mean of a completion's token ratios",
        _of_completion("((log_ratio.exp() * kept).sum(1) / kept.sum(1).clamp(min=1))"),
        "Ratios of independent choices multiply: sum the log-ratios, then exp.",
    ),
    Mistake(
        "the sum of a completion's token ratios",
        _of_completion("(log_ratio.exp() * kept).sum(1)"),
        "The exponential comes after the sum: exp of a sum is a product, a sum of exps is not.",
    ),
    Mistake(
        "a product that one padded token makes 0",
        _of_completion("(log_ratio.exp() * kept).prod(1)"),
        "Padding weighs 0 as a token, but in a product it must count as 1: sum the masked "
        "log-ratios and take exp of the sum.",
    ),
    Mistake(
        "the logarithm of the ratio",
        _edit(
            "the exponential",
            ".exp().masked_fill(~kept, 0)",
            "",
            ".exp().masked_fill(~kept.any(1), 0)",
            "",
        ),
        "A difference of log-probs is the log of the ratio: take exp.",
    ),
    Mistake(
        "a ratio of log-probs",
        _edit("the ratio", "(logprobs - old)", "(logprobs / old).log()"),
        "The ratio of probabilities is exp of the *difference* of their logarithms.",
    ),
    Mistake(
        "the ratio of the whole prefix at each token",
        _edit("a token's weight", "log_ratio.exp()", "log_ratio.cumsum(1).exp()"),
        "A token's weight is its own ratio; the product up to it is another estimator.",
    ),
    Mistake(
        "weights cut off at 1.2",
        _edit("the size", "return weights", "return weights.clamp(max=1.2)"),
        "Clipping is PPO's idea and comes in lesson 05; these are the plain ratios.",
    ),
    Mistake(
        "weights that no gradient leaves",
        _edit("the gradient", "return weights", "return weights.detach()"),
        "The ratio itself carries the gradient of the loss: only the old log-probs are detached.",
    ),
)


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
    mistakes=MISTAKES,
    alternatives=(by_loop, by_where, line_by_line),
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
