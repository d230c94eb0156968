"""Estimates of KL(πθ‖πref) from one sampled token each."""

from collections.abc import Iterator
from dataclasses import replace

import torch
from torch import Tensor

from rlcourse.checks.declaring import Case, CaseSampler, Sketch, tensor

ESTIMATORS = ("k1", "k2", "k3")


def cases(draw: CaseSampler) -> Iterator[Case]:
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


sketch = Sketch(line_by_line)
alternatives = (_strict(_by_ratio), _strict(_in_float64))
