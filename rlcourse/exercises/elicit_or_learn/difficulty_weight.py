"""Who gets the gradient: the expected weight of a problem, by how often it is solved."""

from collections.abc import Iterator
from dataclasses import replace
from itertools import product
from math import comb

import torch
from torch import Tensor

from rlcourse.algorithms.elicit_or_learn import difficulty_weight
from rlcourse.checks.calling import Case
from rlcourse.checks.cases import CaseSampler, tensor
from rlcourse.checks.exercise import Exercise, Mistake
from rlcourse.checks.sketch import Sketch

METHODS = ("mean", "std", "maxrl")


def _cases(draw: CaseSampler) -> Iterator[Case]:
    def case(label: str, p: Tensor, group_size: int, method: str) -> Case:
        return Case(label, {"p": p, "group_size": group_size, "method": method})

    for method in METHODS:
        yield case(f"worked: groups of two, {method}", tensor([0.5, 0.1]), 2, method)
        size = draw.size(3, 5)
        yield case(
            f"groups of {size}, {method}", draw.uniform(4, low=0.05, high=0.95), size, method
        )
        yield case(f"groups of 8, {method}", draw.uniform(6, low=0.05, high=0.95), 8, method)
        yield case(f"hard problems, {method}", tensor([0.01, 0.03]), 6, method)
        yield case(f"easy problems, {method}", tensor([0.9, 0.99]), 6, method)
        yield case(f"never and always solved, {method}", tensor([0.0, 1.0, 0.4]), 4, method)
        yield case(f"one problem, {method}", draw.uniform(1, low=0.2, high=0.8), 7, method)
    yield case("as many problems as completions", draw.uniform(5, low=0.1, high=0.9), 5, "std")
    yield case("float32", draw.uniform(5, low=0.1, high=0.9).float(), 5, "maxrl")
    yield replace(case("a method that does not exist", tensor([0.5]), 4, "median"), raises=True)


def line_by_line(p, group_size, method):
    if method not in ("mean", "std", "maxrl"):
        raise ValueError(method)
    counts = torch.arange(group_size + 1).to(p.dtype)
    q = counts / group_size
    ways = torch.tensor([comb(group_size, k) for k in range(group_size + 1)]).to(p.dtype)
    chance = ways * p[:, None] ** counts * (1 - p[:, None]) ** (group_size - counts)
    signal = q * (1 - q)
    std = (signal * group_size / (group_size - 1)).sqrt()
    divisor = {"mean": torch.ones_like(q), "std": std, "maxrl": q}[method]
    weight = torch.where(signal > 0, signal / divisor, 0)
    result = (chance * weight).sum(1)
    return result


def by_listing(p, group_size, method):
    """All 2^G groups, each with the advantages that the method gives it."""
    if method not in METHODS:
        raise ValueError(method)
    total = torch.zeros_like(p)
    for outcome in product((0.0, 1.0), repeat=group_size):
        r = torch.tensor(outcome, dtype=p.dtype)
        if r.min() == r.max():
            continue
        scale = {"mean": torch.ones(()), "std": r.std(), "maxrl": r.mean()}[method]
        advantages = (r - r.mean()) / scale
        chance = torch.where(r.bool(), p[:, None], 1 - p[:, None]).prod(1)
        total = total + chance * (advantages * r).mean()
    return total


def by_binomial(p, group_size, method):
    k = torch.arange(1, group_size, dtype=p.dtype)
    safe = p.clamp(1e-300 if p.dtype == torch.float64 else 1e-37, 1)
    log = safe[:, None].log() * k + torch.log1p(-p)[:, None] * (group_size - k)
    size = torch.tensor(float(group_size), dtype=p.dtype)
    log = log + torch.lgamma(size + 1) - torch.lgamma(k + 1) - torch.lgamma(size - k + 1)
    q = k / group_size
    weights = {
        "mean": q * (1 - q),
        "std": (q * (1 - q) * (group_size - 1) / group_size).sqrt(),
        "maxrl": 1 - q,
    }
    if method not in weights:
        raise ValueError(f"no method {method}")
    return log.exp() @ weights[method]


def _limit(p, group_size, method):
    """The formulas of an infinite group."""
    formulas = {"mean": p * (1 - p), "std": (p * (1 - p)).sqrt(), "maxrl": 1 - p}
    if method not in formulas:
        raise ValueError(method)
    return formulas[method]


def _any_method(p, group_size, method):
    return difficulty_weight(p, group_size, method if method in METHODS else "mean")


_edit = Sketch(line_by_line).edit


EXERCISE = Exercise(
    reference=difficulty_weight,
    lesson="13_elicit_or_learn",
    section="Who gets the gradient",
    points=4,
    difficulty=3,
    minutes=15,
    cases=_cases,
    oracle=by_listing,
    mistakes=(
        Mistake(
            "the weight in an infinitely large group",
            _limit,
            "A group of eight often agrees, and then it weighs nothing: average over the shares q "
            "that a group of this size can have.",
        ),
        Mistake(
            "a chance without the number of ways",
            _edit("the chance: the ways", "ways * p[:, None]", "p[:, None]"),
            "k right ones of G can stand in C(G, k) places: `comb(group_size, k)`.",
        ),
        Mistake(
            "a chance without the wrong ones",
            _edit("the chance: its powers", " * (1 - p[:, None]) ** (group_size - counts)", ""),
            "The other G − k must be wrong: a factor (1 − p)^(G−k).",
        ),
        Mistake(
            "all numbers of right ones equally likely",
            _edit(
                "the chance",
                "chance = ways * p[:, None] ** counts * (1 - p[:, None]) ** (group_size - counts)",
                "chance = (0 * p[:, None] + 1 / (group_size + 1)).expand(-1, group_size + 1)",
            ),
            "How many are right is binomial: C(G, k) p^k (1 − p)^(G−k).",
        ),
        Mistake(
            "the population standard deviation",
            _edit(
                "std: which",
                "(signal * group_size / (group_size - 1)).sqrt()",
                "signal.sqrt()",
            ),
            "Lesson 06 divides by the *sample* standard deviation: q(1 − q)·G/(G − 1) under the "
            "root.",
        ),
        Mistake(
            "a sample standard deviation with its factor upside down",
            _edit("std: which", "group_size / (group_size - 1)", "(group_size - 1) / group_size"),
            "The sample's is the larger one: q(1 − q)·G/(G − 1) under the root.",
        ),
        Mistake(
            "a standard deviation with the ε of lesson 06",
            _edit("std: which", ".sqrt()", ".sqrt() + 1e-4"),
            "The exact weight is asked for, without ε.",
        ),
        Mistake(
            "a variance in place of the standard deviation",
            _edit(
                "std: which",
                "(signal * group_size / (group_size - 1)).sqrt()",
                "signal * group_size / (group_size - 1)",
            ),
            "The advantage is divided by the root of the variance.",
        ),
        Mistake(
            "the standard deviation of the problem, not of the group",
            _edit(
                "std: which",
                "(signal * group_size / (group_size - 1)).sqrt()",
                "(p * (1 - p)).sqrt()[:, None].expand(-1, group_size + 1)",
            ),
            "The trainer does not know p: it divides by the spread of the G rewards it has.",
        ),
        Mistake(
            "the mean of the problem, not of the group",
            _edit(
                "maxrl: the mean", '"maxrl": q', '"maxrl": p[:, None].expand(-1, group_size + 1)'
            ),
            "The trainer does not know p: it divides by the mean of the G rewards it has.",
        ),
        Mistake(
            "the number of right ones in place of their share",
            _edit("maxrl: the mean", '"maxrl": q', '"maxrl": counts'),
            "The mean of the group's rewards is q = k/G.",
        ),
        Mistake(
            "a division by the share of wrong ones, or p and 1 − p exchanged",
            _edit("maxrl: the mean", '"maxrl": q', '"maxrl": 1 - q'),
            'The mean of rewards of 0 and 1 is the share of *right* ones: "maxrl" divides by q. '
            "(p and 1 − p exchanged in the chance have the same effect.)",
        ),
        Mistake(
            "std and maxrl exchanged",
            _edit("the methods", '"std": std, "maxrl": q', '"std": q, "maxrl": std'),
            '"std" divides by the standard deviation, "maxrl" by the mean.',
        ),
        Mistake(
            "mean and maxrl exchanged",
            _edit(
                "the methods",
                '"mean": torch.ones_like(q)',
                '"mean": q',
                '"maxrl": q',
                '"maxrl": 1 + 0 * q',
            ),
            '"mean" subtracts the mean and divides by nothing, "maxrl" divides by it as well.',
        ),
        Mistake(
            "the problem's own p subtracted, not the mean of the group",
            _edit("the signal", "signal / divisor", "q * (1 - p[:, None]) / divisor"),
            "The trainer does not know p: it subtracts the mean q of the G rewards it has.",
        ),
        Mistake(
            "the advantage of a right one, without how many there are",
            _edit("the signal", "signal / divisor", "(1 - q) / divisor"),
            "(1/G) Σ Aᵢ rᵢ adds the advantage of each right one: q times (1 − q).",
        ),
        Mistake(
            "the mean size of the advantages, which is twice the weight",
            _edit("the signal", "signal / divisor", "2 * signal / divisor"),
            "(1/G) Σ Aᵢ rᵢ counts the right ones alone; the wrong ones have r = 0.",
        ),
        Mistake(
            "a sum over the group in place of its mean",
            _edit("the signal", "signal / divisor", "group_size * signal / divisor"),
            "(1/G) Σ: divide by the size of the group.",
        ),
        Mistake(
            "leave-one-out advantages",
            _edit(
                "the signal", "signal / divisor", "signal / divisor * group_size / (group_size - 1)"
            ),
            "The mean that is subtracted is that of the whole group, the completion itself "
            "included (lesson 03).",
        ),
        Mistake(
            "an average over the groups that disagree",
            _edit(
                "the average",
                "result = (chance * weight).sum(1)",
                "result = ((chance * weight).sum(1) / chance[:, 1:-1].sum(1)).nan_to_num(0.0)",
            ),
            "Groups that agree count, with a weight of 0: they are samples that were paid for.",
        ),
        Mistake(
            "a mean over the possible shares",
            _edit("the average", "(chance * weight).sum(1)", "(chance * weight).mean(1)"),
            "The chances add up to 1: an expectation is their sum.",
        ),
        Mistake(
            "NaN from groups that agree",
            _edit("agreement", "torch.where(signal > 0, signal / divisor, 0)", "signal / divisor"),
            "All wrong is 0/0: such a group has advantages of 0.",
        ),
        Mistake(
            "a sum that ends one too early",
            _edit("agreement", "signal > 0,", "(signal > 0) & (counts < group_size - 1),"),
            "Of G completions, G − 1 can be right, too: `range(1, group_size)`.",
        ),
        Mistake(
            "a weight for a method that does not exist",
            _any_method,
            "A misspelled method that passes silently trains something else: raise ValueError.",
            telling=1,
        ),
    ),
    alternatives=(line_by_line, by_listing, by_binomial),
    hints=(
        "What does a single group weigh of which k completions are right? And how likely is it?",
        "With q = k/G a right completion has advantage 1 − q before the division, and a share q "
        "of the group has it: q(1 − q)/divisor. The number k is binomial. Only k from 1 to G − 1 "
        "weigh anything.",
        "With the reference's steps, after the ValueError:\n\n"
        "    weight = torch.zeros_like(p)\n"
        "    for right in range(1, group_size):\n"
        "        q = right / group_size\n"
        "        std = (q * (1 - q) * group_size / (group_size - 1)) ** 0.5\n"
        '        divisor = {"mean": ..., "std": std, "maxrl": ...}[method]\n'
        "        chance = comb(group_size, right) * p**right * ...\n"
        "        weight = weight + chance * q * (1 - q) / divisor\n"
        "    return weight",
    ),
)
