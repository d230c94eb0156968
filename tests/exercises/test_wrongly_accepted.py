"""Wrong answers that once passed because a case was missing: each is rejected on every drawing."""

import re

import pytest
import torch

from rlcourse import algorithms, exercises
from rlcourse.checks.asking.calling import call_all, describe
from rlcourse.checks.judging.exam import Exam
from rlcourse.tasks import rewards


def examined(name, fn, seed, hidden):
    exam = Exam(exercises.get(name), seed, hidden)
    return exam.judge(describe(fn), call_all(fn, exam.cases))


def in_float32(counts, n, ks):
    return algorithms.pass_at_k_curve(counts, n, ks).float()


def advantages_in_float32(rewards, group_size, k):
    return algorithms.pass_at_k_advantages(rewards, group_size, k).float()


def with_eps_in_float32(**arguments):
    declared = exercises.get("difficulty_weight").mistakes
    with_eps = next(mistake for mistake in declared if "ε of lesson 06" in mistake.name)
    return with_eps.implementation(**arguments).float()


def kl_with_infinite_gradients(logits_p, logits_q):
    logp, logq = logits_p.log_softmax(-1), logits_q.log_softmax(-1)
    p = logp.exp()
    return torch.where(p > 0, p * (logp - logq), 0.0).sum(-1)


def weights_that_trust_padding(logprobs, old_logprobs, mask, level="token"):
    right = algorithms.importance_weights(logprobs, old_logprobs, mask, level)
    return (logprobs - old_logprobs.detach()).exp() * mask if level == "token" else right


def a_number_anywhere(text):
    found = re.search(r"-?\$?\d[\d,]*(?:\.\d+)?", text.rpartition("####")[2])
    return rewards.extract_answer("####" + found.group()) if found and "####" in text else None


def an_earlier_pair(text):
    pairs = re.findall(r"<answer>((?:(?!<answer>).)*?)</answer>", text, flags=re.DOTALL)
    numbers = [rewards.extract_answer("####" + pair) for pair in reversed(pairs)]
    return next((number for number in numbers if number is not None), None)


def whitened_by_moments(x, mask):
    mean = algorithms.masked_mean(x, mask)
    variance = algorithms.masked_mean(x * x, mask) - mean**2
    return ((x - mean) / (variance.sqrt() + 1e-8)).masked_fill(~mask.bool(), 0)


def step_that_switches_the_mode(policy, optimizer, rollouts, *args, **kwargs):
    policy.train()
    return algorithms.grpo_step(policy, optimizer, rollouts, *args, **kwargs)


WRONG = [
    ("kl_divergence", kl_with_infinite_gradients),
    ("importance_weights", weights_that_trust_padding),
    ("extract_answer", a_number_anywhere),
    ("extract_tagged_answer", an_earlier_pair),
    ("whiten", whitened_by_moments),
    ("grpo_step", step_that_switches_the_mode),
    ("pass_at_k_curve", in_float32),
    ("pass_at_k_advantages", advantages_in_float32),
    ("difficulty_weight", with_eps_in_float32),
]


@pytest.mark.parametrize(("name", "fn"), WRONG, ids=[fn.__name__ for _, fn in WRONG])
def test_it_is_rejected_on_every_drawing(name, fn):
    for seed in range(3):
        for hidden in (False, True):
            assert not examined(name, fn, seed, hidden).passed
