"""Estimates of KL(πθ‖πref) from one sampled token each."""

from collections.abc import Iterator
from dataclasses import replace

import torch
from torch import Tensor

from rlcourse.algorithms.importance_sampling import kl_estimates
from rlcourse.checks.calling import Case
from rlcourse.checks.cases import CaseSampler, tensor
from rlcourse.checks.exercise import Exercise, Mistake
from rlcourse.checks.sketch import Sketch

ESTIMATORS = ("k1", "k2", "k3")


def _cases(draw: CaseSampler) -> Iterator[Case]:
    def case(label: str, logprobs: Tensor, ref: Tensor, estimator: str | None = None) -> Case:
        arguments = {"logprobs": logprobs, "ref_logprobs": ref}
        return Case(label, arguments | ({"estimator": estimator} if estimator else {}))

    coin = tensor([[0.6, 0.4]]).log(), tensor([[0.5, 0.5]]).log()
    for name in ESTIMATORS:
        yield case(f"worked: a loaded coin, {name}", *coin, name)
    yield case("no estimator given", *_pair(draw))
    for name in ESTIMATORS:
        yield case(f"{name}", *_pair(draw), name)
        logprobs, ref = _pair(draw)
        yield case(
            f"{name}, the reference likelier", logprobs.minimum(ref), logprobs.maximum(ref), name
        )
        yield case(f"{name}, float32", *(t.float() for t in _pair(draw)), name)
    near, apart = draw.logprobs(2, 2), 25 * tensor([[1.0, -1.0], [-0.9, 0.9]])
    for name in ESTIMATORS:
        yield case(f"{name}, far from the reference", near - 26, near - 26 - apart, name)
    yield replace(case("an estimator that does not exist", *coin, "k4"), raises=True)
    same = draw.logprobs(2, 3)
    yield case("the same policy", same, same.clone(), "k3")
    # e^-d − 1 loses all its digits here; expm1 keeps them.
    near = draw.logprobs(*draw.shape())
    yield case("policies that hardly differ", near, near + 0.001 * draw.normal(*near.shape), "k3")


def _strict(implementation):
    """With the ValueError, so that the mistake is only the one that it is meant to be."""

    def checked(logprobs, ref_logprobs, estimator="k3"):
        if estimator not in ESTIMATORS:
            raise ValueError(estimator)
        return implementation(logprobs, ref_logprobs, estimator)

    return checked


def _pair(draw: CaseSampler) -> tuple[Tensor, Tensor]:
    shape = draw.shape()
    return draw.logprobs(*shape), draw.logprobs(*shape)


def _by_ratio(logprobs, ref_logprobs, estimator="k3"):
    """From r = πref/πθ, as the estimators are usually written."""
    log_r = ref_logprobs.detach() - logprobs
    if estimator == "k1":
        return -log_r
    if estimator == "k2":
        return 0.5 * log_r * log_r
    return log_r.exp() - 1 - log_r


def _in_float64(logprobs, ref_logprobs, estimator="k3"):
    d = logprobs.double() - ref_logprobs.detach().double()
    value = {"k1": d, "k2": 0.5 * d.pow(2), "k3": torch.exp(-d) - 1 + d}[estimator]
    return value.to(logprobs.dtype)


def line_by_line(logprobs, ref_logprobs, estimator="k3"):
    if estimator not in ("k1", "k2", "k3"):
        raise ValueError(estimator)
    ref = ref_logprobs.detach()
    d = logprobs - ref
    k1, k2, k3 = d, d**2 / 2, torch.expm1(-d) + d
    estimates = {"k1": k1, "k2": k2, "k3": k3}[estimator]
    return estimates


_edit = Sketch(line_by_line).edit


EXERCISE = Exercise(
    reference=kl_estimates,
    lesson="04_importance_sampling",
    section="Three estimates from one token",
    points=3,
    difficulty=2,
    minutes=8,
    differentiable=("logprobs",),
    constants=("ref_logprobs",),
    cases=_cases,
    mistakes=(
        Mistake(
            "policy and reference exchanged",
            _edit("the log-ratio", "logprobs - ref\n", "ref - logprobs\n"),
            "The tokens were drawn by πθ, so d = log πθ − log πref; the other way round reports "
            "0.355 in the lesson's example, where the divergence is 0.275.",
        ),
        Mistake(
            "k3 without the −1",
            _edit("k3", "torch.expm1(-d) + d", "(-d).exp() + d"),
            "Two equal policies have divergence 0, and e⁰ + 0 is 1: subtract it.",
        ),
        Mistake(
            "k2 without the ½",
            _edit("k2", "d**2 / 2", "d**2"),
            "Near d = 0 the divergence is half the mean square.",
        ),
        Mistake(
            "k1 with its sign turned",
            _edit("k1", "= d,", "= -d,"),
            "KL(πθ‖πref) is the mean of log πθ *minus* log πref under πθ.",
        ),
        Mistake(
            "k3 with e^d in place of e^(−d)",
            _edit("k3", "expm1(-d)", "expm1(d)"),
            "Under πθ the ratio with mean 1 is πref/πθ = e^(−d).",
        ),
        Mistake(
            "k3 with −d in place of +d",
            _edit("k3", "torch.expm1(-d) + d", "torch.expm1(-d) - d"),
            "k3 is k1 = d plus something of mean zero, e^(−d) − 1.",
        ),
        Mistake(
            "e^d − 1 − d, which estimates something else from these samples",
            _edit("k3", "torch.expm1(-d) + d", "torch.expm1(d) - d"),
            "It is never negative either, but under πθ the mean of e^d is not 1, so this is not "
            "KL(πθ‖πref).",
        ),
        Mistake(
            "the absolute value for k1",
            _edit("k1", "= d,", "= d.abs(),"),
            "k1 may be negative on a single token; only because of that is its mean right.",
        ),
        Mistake(
            "k1 whatever `estimator` says",
            _edit("the choice", "[estimator]", '["k1"]'),
            "The argument names one of three formulas.",
        ),
        Mistake(
            "k2 whatever `estimator` says",
            _edit("the choice", "[estimator]", '["k2"]'),
            "The argument names one of three formulas.",
        ),
        Mistake(
            "k3 whatever `estimator` says",
            _edit("the choice", "[estimator]", '["k3"]'),
            "The argument names one of three formulas.",
        ),
        *(
            Mistake(
                f"log-ratios held within ±{bound}",
                _edit(
                    "the range", "k1, k2, k3 =", f"d = d.clamp(-{bound}, {bound})\n    k1, k2, k3 ="
                ),
                "A bound hides how far the policy has gone, and beyond it no gradient calls it "
                "back: these are the plain formulas.",
            )
            for bound in (3, 5, 10, 20)
        ),
        Mistake(
            "numbers for an estimator that does not exist, where a ValueError is asked for",
            _edit("an unknown estimator", "raise ValueError(estimator)", 'estimator = "k3"'),
            'A slip such as estimator="kl1" would go unseen for a whole training run: raise a '
            "ValueError.",
            telling=1,
        ),
        Mistake(
            "a lookup that raises KeyError for an estimator that does not exist",
            _edit("an unknown estimator", "raise ValueError", "raise KeyError"),
            "An argument with a wrong value is a ValueError, and its message should say which "
            "values there are.",
            telling=1,
        ),
        Mistake(
            "k1 where no estimator is given",
            _edit("the default", 'estimator="k3"', 'estimator="k1"'),
            'The default is estimator="k3".',
            telling=1,
        ),
        Mistake(
            "estimates through which gradient flows into the reference",
            _edit("the reference as a constant", "ref_logprobs.detach()", "ref_logprobs"),
            "The reference is frozen: use `ref_logprobs.detach()`.",
        ),
        Mistake(
            "estimates that no gradient leaves",
            _edit("the gradient", "return estimates", "return estimates.detach()"),
            "As a penalty in a loss the estimate must carry the gradient of `logprobs`.",
        ),
        Mistake(
            "the mean over all tokens",
            _edit("the shape of the result", "return estimates", "return estimates.mean()"),
            "One estimate for each token, (N, T): the loss decides how to average, and it knows "
            "the mask.",
        ),
        Mistake(
            "estimates weighted by π once more",
            _edit("no weights", "return ", "return logprobs.exp() * "),
            "The tokens were *sampled* from πθ: that is the weight.",
        ),
        Mistake(
            "a difference of probabilities in place of log-probs",
            _edit("the log-ratio", "logprobs - ref\n", "logprobs.exp() - ref.exp()\n"),
            "The arguments are log-probs already, and the ratio is exp of their difference.",
        ),
    ),
    alternatives=(_strict(_by_ratio), _strict(_in_float64), line_by_line),
    hints=(
        "All three are functions of one number, d = log πθ − log πref of the sampled token.",
        "k1 is d, k2 is d²/2, and k3 adds to d a term whose mean under πθ is zero: πref/πθ − 1.",
        "With a detached reference:\n\n"
        "    log_ratio = logprobs - ref_logprobs.detach()\n"
        '    if estimator == "k1": return log_ratio\n'
        '    if estimator == "k2": return ...\n'
        '    if estimator == "k3": return torch.expm1(-log_ratio) + ...\n'
        "    raise ValueError(...)",
    ),
)
