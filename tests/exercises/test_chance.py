"""Sampling without randomness is detected, whatever its frequencies; zeros earn nothing."""

import pytest
import torch

from rlcourse.algorithms import sample_tokens as right
from rlcourse.checks.asking.calling import call_all, describe
from rlcourse.checks.judging.exam import Exam, judge
from rlcourse.courses import shipped
from rlcourse.courses.modules import load_module
from rlcourse.exercises import all as all_exercises
from rlcourse.exercises import get

filtered = load_module(shipped().lesson("01").directory / "sample_tokens.py").filtered


def weights_of(logits, temperature, top_k, top_p):
    weights = filtered(logits, temperature, top_k, top_p)
    return weights / weights.sum(-1, keepdim=True)


def at_heights(heights):
    """A sampler that reads the tokens off at heights which `heights(n, generator)` gives."""

    def sample_tokens(logits, temperature=1.0, top_k=None, top_p=None, generator=None):
        if temperature == 0:
            return logits.argmax(-1)
        torch.rand(len(logits), generator=generator)  # what can be asked of it has been drawn from
        cumulative = weights_of(logits, temperature, top_k, top_p).cumsum(-1)
        height = heights(len(logits), generator).double()[:, None]
        return (cumulative <= height).sum(-1).clamp(max=logits.shape[-1] - 1)

    return sample_tokens


def fixed(n, generator):
    return torch.rand(n, generator=torch.Generator().manual_seed(5))


def every_pair_alike(n, generator):
    return torch.rand(n, generator=generator)[: (n + 1) // 2].repeat_interleave(2)[:n]


NO_CHANCE = {
    "a table of numbers": at_heights(fixed),
    "even distances from a random start": at_heights(
        lambda n, g: (torch.rand((), generator=g) + torch.arange(n) / n) % 1
    ),
    "one draw for two rows": at_heights(every_pair_alike),
    "one draw for all rows": at_heights(lambda n, g: torch.rand(1, generator=g).expand(n)),
    "the middle of the distribution": at_heights(lambda n, g: torch.full((n,), 0.5)),
}


def tokens_out_of(change):
    """The right answer, altered."""

    def sample_tokens(logits, temperature=1.0, top_k=None, top_p=None, generator=None):
        tokens = right(logits, temperature, top_k, top_p, generator)
        return change(tokens, logits.shape[-1]) if temperature else tokens

    return sample_tokens


NO_TOKENS = {
    "token −7 for the first": tokens_out_of(lambda t, v: torch.where(t == 0, -7, t)),
    "−1 in one row of all": tokens_out_of(
        lambda t, v: torch.where(torch.arange(len(t)) == 0, -1, t)
    ),
    "floats": tokens_out_of(lambda t, v: t.double()),
}


@pytest.mark.parametrize("hidden", [False, True])
@pytest.mark.parametrize("name", [*NO_CHANCE, *NO_TOKENS])
def test_sampling_without_chance_or_tokens_does_not_pass(name, hidden):
    fn = {**NO_CHANCE, **NO_TOKENS}[name]
    exam = Exam(get("sample_tokens"), 3, hidden)
    result = exam.judge(describe(fn), call_all(fn, exam.cases))
    assert not result.passed and result.score < 0.5


@pytest.mark.parametrize("exercise", all_exercises(), ids=lambda e: e.name)
def test_zeros_and_copies_of_an_argument_earn_little(exercise):
    """An answer that computes nothing is right in the odd corner case at most."""
    exam = Exam(exercise, 1, hidden=True)
    nothing = [lambda **a: torch.tensor(0.0).double(), lambda **a: 0.0, lambda **a: None]
    for name in exam.cases[0].arguments:
        if isinstance(exam.cases[0].arguments[name], torch.Tensor):
            nothing.append(lambda name=name, **a: torch.zeros_like(a[name]))
    for fn in nothing:
        triples = zip(exam.cases, exam.expected, call_all(fn, exam.cases), strict=True)
        agreeing = [case.label for case, *pair in triples if not judge(exercise, case, *pair)]
        assert len(agreeing) < len(exam.cases) / 2, agreeing
