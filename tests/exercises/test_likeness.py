"""Wrong answers that no declared mistake explains: what gives the same numbers, or nothing."""

import ast
import inspect
import textwrap
from dataclasses import replace

import pytest
import torch
from torch.nn import functional as F

from rlcourse import algorithms, check, exercises
from rlcourse.checks.calling import call_all, describe
from rlcourse.checks.exam import Exam
from rlcourse.checks.proof_of_likeness import prove_likeness
from rlcourse.checks.slips import slips_of


def judged(exercise, fn, seed=7, hidden=False):
    """The result of an answer, on one drawing of the cases."""
    exercise = exercises.get(exercise) if isinstance(exercise, str) else exercise
    exam = Exam(exercise, seed, hidden)
    return exam.judge(describe(fn), call_all(fn, exam.cases))


def from_the_first_reward(rewards, group_size):
    groups = rewards.reshape(-1, group_size)
    return (groups - groups.amin(1, keepdim=True)).flatten()


def without_sign(rewards, group_size):
    groups = rewards.reshape(-1, group_size)
    return (groups - groups.mean(1, keepdim=True)).abs().flatten()


def added(rewards, group_size):
    groups = rewards.reshape(-1, group_size)
    others = groups.sum(1, keepdim=True) - groups
    return (groups + others / max(group_size - 1, 1)).flatten()


def own_eps(rewards, group_size, eps=1e-4):
    groups = rewards.reshape(-1, group_size)
    centered = groups - groups.mean(1, keepdim=True)
    std = groups.std(1, keepdim=True, correction=min(1, group_size - 1))
    return (centered / (std + 1e-8)).flatten()


def discounted_twice(rewards, mask, gamma=1.0):
    rewards = rewards.masked_fill(~mask.bool(), 0)
    future, returns = torch.zeros_like(rewards[:, 0]), []
    for t in reversed(range(rewards.shape[1])):
        future = rewards[:, t] + gamma * gamma * future
        returns.insert(0, future)
    return torch.stack(returns, 1).masked_fill(~mask.bool(), 0)


def estimates(rewards, values, mask, gamma, weight):
    padding = ~mask.bool()
    r, v = (x.detach().masked_fill(padding, 0) for x in (rewards, values))
    advantage = following = torch.zeros_like(v[:, 0])
    found = []
    for t in reversed(range(r.shape[1])):
        advantage = r[:, t] + gamma * following - v[:, t] + weight * advantage
        advantage = advantage.masked_fill(padding[:, t], 0)
        following = v[:, t]
        found.insert(0, advantage)
    advantages = torch.stack(found, 1)
    return advantages, advantages + v


def product_squared(rewards, values, mask, gamma=1.0, lam=0.95):
    return estimates(rewards, values, mask, gamma, (gamma * lam) ** 2)


def other_lambda(rewards, values, mask, gamma=1.0, lam=0.95):
    return estimates(rewards, values, mask, gamma, gamma * (1 - lam))


def upper_bound_only(values, returns, old_values, mask, clip=0.2):
    values = values.masked_fill(~mask.bool(), 0)
    returns, old = returns.detach(), old_values.detach()
    near = old + (values - old).clamp(max=clip)
    errors = torch.maximum((values - returns) ** 2, (near - returns) ** 2)
    return algorithms.masked_mean(errors, mask) / 2


def rewards_added(reward_a, reward_b):
    return 1 / (1 + torch.exp(-(reward_a + reward_b)))


def without_a_square(weights):
    weights = weights / weights.max().clamp(min=1e-38)
    return weights.sum() / (weights * weights).sum().clamp(min=1)


def until_the_last_but_one(logprobs, mask):
    return logprobs.masked_fill(~mask.bool(), 0).cumsum(dim=1)[:, -2]


def cap_included(trainer_logprobs, sampler_logprobs, mask, cap=2.0, mode="truncate"):
    if mode not in ("truncate", "mask"):
        raise ValueError(mode)
    ratio = algorithms.importance_weights(trainer_logprobs, sampler_logprobs, mask).detach()
    return ratio.masked_fill(ratio >= cap, 0) if mode == "mask" else ratio.clamp(max=cap)


def sign_of_the_advantage(logprobs, advantages, mask):
    summed = logprobs.masked_fill(~mask.bool(), 0).sum(1)
    return -(advantages.detach().sign() * summed).mean()


LIKENESSES = [
    ("group_mean_advantages", from_the_first_reward, "the smallest is used in place of a mean"),
    ("group_mean_advantages", without_sign, "the result is replaced by its absolute value"),
    ("leave_one_out_advantages", added, "a plus is used in place of a minus"),
    ("group_normalized_advantages", own_eps, "`eps` is 1e-08"),
    ("returns_to_go", discounted_twice, "`gamma` is squared"),
    ("gae", product_squared, "from `gamma` and `lam` is squared"),
    ("gae", other_lambda, "`lam` is subtracted from 1"),
    ("value_loss", upper_bound_only, "only the upper bound of `clamp` holds"),
    ("preference_probability", rewards_added, "`reward_b` is negated"),
    ("effective_sample_size", without_a_square, "no square is taken of a term from `weights`"),
    ("sequence_logprobs", until_the_last_but_one, "`mask` is without the last column"),
    ("truncated_weights", cap_included, "a comparison with `cap` includes equality"),
    ("reinforce_loss", sign_of_the_advantage, "`advantages` are replaced by the sign"),
]


@pytest.mark.parametrize(("exercise", "fn", "words"), LIKENESSES)
def test_what_gives_the_same_numbers_is_told(exercise, fn, words):
    for seed, hidden in ((7, False), (8, True)):
        result = judged(exercise, fn, seed, hidden)
        assert result.mistake is None and words in (result.likeness or ""), result
        assert result.sentences[0] == f"The same numbers come out if {result.likeness}."
        assert "The values differ from the expected ones." not in result.sentences
    assert result.as_json()["likeness"] == result.likeness


def policy_loss(logprobs, old_logprobs, ref_logprobs, advantages, mask, clip, weight):
    real = mask.bool()
    logprobs, ref = logprobs.masked_fill(~real, 0), ref_logprobs.masked_fill(~real, 0)
    ratio = algorithms.importance_weights(logprobs, old_logprobs, mask)
    a = advantages.detach()
    a = a[:, None] if a.dim() == 1 else a
    objective = torch.minimum(ratio * a, ratio.clamp(1 - clip, 1 + clip) * a)
    kl = algorithms.kl_estimates(logprobs, ref, "k3")
    return -algorithms.masked_mean(objective + weight * kl, mask, dim=1).mean()


def test_a_declared_mistake_and_an_undeclared_one_are_both_told():
    def whiten(x, mask):
        mean = algorithms.masked_mean(x, mask)
        deviation = algorithms.masked_mean((x - mean).abs(), mask)
        return ((x - mean) / (deviation + 1e-8)).masked_fill(~mask.bool(), 0)

    def grpo_loss(logprobs, old_logprobs, ref_logprobs, advantages, mask, clip=0.2, beta=0.04):
        given = logprobs, old_logprobs, ref_logprobs, advantages, mask
        return policy_loss(*given, clip, beta * beta)

    for name, fn, declared, besides in (
        ("whiten", whiten, "a division by the variance", "An absolute value is used in place"),
        ("grpo_loss", grpo_loss, "a KL that is rewarded", "`beta` is squared"),
    ):
        result = judged(name, fn)
        mistake = next(m for m in exercises.get(name).mistakes if m.name == declared)
        first, known, other = result.sentences[:3]
        assert result.mistake is None and result.likeness.startswith(f"{declared} + ")
        assert first == "The same numbers come out if two things are wrong at once."
        assert mistake.diagnosis in known and other.startswith(f"Wrong: {besides}")


def gini(logits):
    return 1 - logits.softmax(-1).square().sum(-1)


def smooth_errors(values, returns, old_values, mask, clip=0.2):
    values = values.masked_fill(~mask.bool(), 0)
    errors = F.smooth_l1_loss(values, returns.detach(), reduction="none")
    return algorithms.masked_mean(errors, mask)


def odd_mean(rewards, group_size):
    groups = rewards.reshape(-1, group_size)
    return (groups / (groups.mean(1, keepdim=True).abs() + 0.3) - 1).flatten()


def raising(rewards, group_size):
    groups = rewards.reshape(-1, group_size)
    return (groups - groups.mean(1)[:, None, None]).view(3, 17)


@pytest.mark.parametrize(
    ("exercise", "fn"),
    [
        ("token_entropy", gini),
        ("value_loss", smooth_errors),
        ("group_mean_advantages", odd_mean),
        ("group_mean_advantages", raising),
    ],
)
def test_silent_where_nothing_known_gives_the_numbers(exercise, fn):
    result = judged(exercise, fn)
    assert not result.passed and result.mistake is result.likeness is None
    assert not any("same numbers" in sentence for sentence in result.sentences)


def test_no_warning_is_about_code_that_nobody_wrote(recwarn):
    def unsigned(rewards, group_size, eps=1e-4):
        groups = rewards.reshape(-1, group_size)
        mean = groups.mean(1, keepdim=True)
        return ((groups - mean).abs() / (1 + mean)).flatten()

    assert judged("group_normalized_advantages", unsigned).likeness is None
    assert [str(warning.message) for warning in recwarn] == []


def test_silent_where_candidates_disagree_on_cases_that_nobody_is_asked():
    exercise = exercises.get("group_mean_advantages")

    def squares(draw):
        """As many groups as completions in each; among the cases that are not asked, others."""
        for case in exercise.cases(draw):
            size = case.arguments["group_size"]
            if draw.hidden or len(case.arguments["rewards"]) == size**2 > 1:
                yield case
        for size in (2, 3, 4):
            square = {"rewards": draw.rewards(size**2), "group_size": size}
            yield replace(case, label=f"{size} groups of {size}", arguments=square)

    def interleaved(rewards, group_size):
        groups = rewards.reshape(-1, len(rewards) // group_size)
        return (groups - groups.mean(0)).flatten()

    blind = replace(exercise, mistakes=(), cases=squares)
    assert judged(blind, interleaved).likeness is None
    seeing = replace(exercise, mistakes=())
    assert judged(seeing, interleaved).likeness is not None


def with_eps(logits):
    p = logits.softmax(-1)
    return -(p * torch.log(p + 1e-3)).sum(-1)


def five_percent(logits):
    spread = 1 + 0.05 * logits.detach().mean(-1).cos()
    return spread * algorithms.token_entropy(logits)


def test_what_is_nearly_right_is_said_to_be():
    assert any("weighs little" in s for s in judged("token_entropy", with_eps).sentences)
    assert not any("weighs little" in s for s in judged("token_entropy", five_percent).sentences)


def test_one_yes_or_no_is_no_evidence_for_what_nobody_would_write():
    """Equal rewards, rescaled to 0 … 1, are 0/0, and NaN differs from itself."""
    rounding = next(m for m in exercises.get("informative_groups").mistakes if "computed" in m.name)
    alone = replace(exercises.get("informative_groups"), mistakes=())
    found = check(rounding.implementation, alone, seed=0)
    assert not found.passed and found.agreeing == found.cases - 1
    assert "a mean is used in place of the smallest" in found.likeness


def test_a_new_tensor_is_no_step_that_can_be_left_out():
    """Its argument is of another kind: "a step such as `zeros_like` is left out" helps nobody."""
    every = (slip.words for e in exercises.all() for slip in slips_of(e.reference))
    said = [words for words in every if "`zeros" in words or "`ones" in words]
    assert said and all("is called without its `" in words for words in said)  # such as `dtype`


@pytest.mark.parametrize("name", ["leave_one_out_advantages", "pass_at_k", "extract_answer"])
def test_words_of_a_slip_do_not_print_the_answer(name):
    reference = exercises.get(name).reference
    tree = ast.parse(textwrap.dedent(inspect.getsource(reference))).body[0]
    pieces = {
        ast.unparse(node)
        for node in ast.walk(tree)
        if isinstance(node, ast.BinOp | ast.Call | ast.Compare | ast.Assign)
    }
    slips = slips_of(reference)
    assert len(slips) > 20
    assert not [slip.words for slip in slips for piece in pieces if piece in slip.words]


@pytest.mark.parametrize("name", ["overlong_penalty", "group_mean_advantages"])
def test_declared_mistakes_that_nobody_had_declared_are_told_truly(name):
    told = list(prove_likeness(exercises.get(name)))
    assert all(one.is_true for one in told)
    assert sum(bool(one.likeness) for one in told) >= len(told) / 3


@pytest.mark.parametrize("small", [1e-2, 1e-3, 1e-4])
def test_a_small_number_in_a_divisor_is_seen_by_its_size(small):
    def masked_mean(x, mask, dim=None):
        kept = mask.to(x.dtype)
        if dim is None:
            return (x * kept).sum() / (kept.sum() + small)
        return (x * kept).sum(dim) / (kept.sum(dim) + small)

    likeness = judged("masked_mean", masked_mean).likeness
    assert likeness == f"{small:g} is added to a divisor"
