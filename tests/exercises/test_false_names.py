"""A wrong name is worse than none, and a verdict is the same for every drawing of the cases."""

import re

import pytest
import torch

from rlcourse import algorithms, check, exercises
from rlcourse.checks.asking.calling import call_all, describe
from rlcourse.checks.asking.case import Case
from rlcourse.checks.judging.exam import Exam
from rlcourse.checks.telling.patterns import Pair, explain
from rlcourse.tasks import rewards


@pytest.fixture(autouse=True)
def home(tmp_path, monkeypatch):
    monkeypatch.setenv("RLCOURSE_HOME", str(tmp_path))


def judged(name, fn, seeds):
    """Results of one answer on several drawings, visible and hidden in turn."""
    for seed in range(seeds):
        exam = Exam(exercises.get(name), 300 + seed, hidden=bool(seed % 2))
        yield exam.judge(describe(fn), call_all(fn, exam.cases))


@pytest.mark.parametrize(
    "name",
    ["whiten", "importance_weights", "kl_estimates", "kl_shaped_rewards", "returns_to_go"],
)
def test_a_turned_sign_is_called_so_and_nothing_else(name):
    reference = exercises.get(name).reference
    for result in judged(name, lambda *args, **kwargs: -reference(*args, **kwargs), 3):
        said = result.mistake or " ".join(result.sentences)
        assert "sign" in said and "as well" not in " ".join(result.sentences), result


def test_a_constant_from_ones_own_divisor_gets_no_name():
    def monte_carlo_policy_gradient(logits, rewards, samples, generator):
        probabilities = logits.softmax(0)
        actions = torch.multinomial(probabilities, samples, replacement=True, generator=generator)
        scores = torch.nn.functional.one_hot(actions, len(logits)) - probabilities
        paid = rewards[actions]
        return (paid[:, None] * scores).sum(0) / (paid != 0).sum().clamp(min=1)

    for result in judged("monte_carlo_policy_gradient", monte_carlo_policy_gradient, 6):
        assert not result.passed and result.mistake is None
        assert "times 2" not in result.message


def test_a_solver_that_never_looks_at_its_tolerance_is_no_exact_solution():
    def conjugate_gradient(matvec, b, iterations=10, tolerance=1e-10):
        x, residual = torch.zeros_like(b), b.clone()
        direction = residual.clone()
        for _ in range(iterations):
            squared, image = residual @ residual, matvec(direction)
            if squared == 0:
                break
            step = squared / (direction @ image)
            x, residual = x + step * direction, residual - step * image
            direction = residual + (residual @ residual) / squared * direction
        return x

    for result in judged("conjugate_gradient", conjugate_gradient, 8):
        assert "exact solution" not in (result.mistake or "")


def test_what_is_right_on_other_cases_is_not_always_0():
    def informative_groups(rewards, group_size):
        return rewards.reshape(-1, group_size).std(1, correction=0) > 1e-3

    for result in judged("informative_groups", informative_groups, 3):
        assert not result.passed and "always 0" not in result.message


def test_a_factor_seen_in_one_result_only_is_no_regularity():
    x = torch.tensor(2.0, dtype=torch.float64)
    wrong = Pair(Case("once", {"x": x}), x, 0.241767 * x)
    again = Pair(Case("once more", {"x": x}), x, 0.241767 * x)
    assert explain([wrong, again], [], "Your result", "the expected one") is None
    right = Pair(Case("right", {"x": 3 * x}), 3 * x, 3 * x)
    double = Pair(Case("once", {"x": x}), x, 2 * x)
    assert explain([double], [right], "Your result", "the expected one") is None
    assert "times 2" in explain([double], [], "Your result", "the expected one")


def clipped(objective=None, ratio_of=None, advantage_of=None):
    """A clipped loss with a second bound somewhere, for the three losses over tokens."""

    def loss(logprobs, old_logprobs, advantages, mask, low, high):
        a = advantages.detach()
        a = a[:, None] if a.dim() == 1 else a
        a = advantage_of(a) if advantage_of else a
        ratio = algorithms.importance_weights(logprobs, old_logprobs, mask)
        ratio = ratio_of(ratio) if ratio_of else ratio
        per_token = torch.minimum(ratio * a, ratio.clamp(1 - low, 1 + high) * a)
        return objective(per_token, a) if objective else per_token

    return loss


SECOND_BOUNDS = {
    "dual clip": clipped(lambda o, a: torch.where(a < 0, torch.maximum(o, 3 * a), o)),
    "ratio at most 10": clipped(ratio_of=lambda r: r.clamp(max=10)),
    "advantages within 1.5": clipped(advantage_of=lambda a: a.clamp(-1.5, 1.5)),
    "advantages within 2": clipped(advantage_of=lambda a: a.clamp(-2, 2)),
}


@pytest.mark.parametrize("bound", SECOND_BOUNDS)
@pytest.mark.parametrize("name", ["grpo_loss", "dapo_loss", "dr_grpo_loss", "ppo_clip_loss"])
def test_a_second_bound_fails_for_every_seed(name, bound):
    objective = SECOND_BOUNDS[bound]

    def grpo_loss(logprobs, old_logprobs, ref_logprobs, advantages, mask, clip=0.2, beta=0.04):
        o = objective(logprobs, old_logprobs, advantages, mask, clip, clip)
        kl = algorithms.kl_estimates(logprobs * mask, ref_logprobs * mask, "k3")
        return -algorithms.masked_mean(o - beta * kl, mask, dim=1).mean()

    def dapo_loss(logprobs, old_logprobs, advantages, mask, clip_low=0.2, clip_high=0.28):
        o = objective(logprobs, old_logprobs, advantages, mask, clip_low, clip_high)
        return -algorithms.masked_mean(o, mask)

    def dr_grpo_loss(logprobs, old_logprobs, advantages, mask, max_tokens, clip=0.2):
        o = objective(logprobs, old_logprobs, advantages, mask, clip, clip)
        return -algorithms.aggregate(o, mask, "constant", max_tokens)

    def ppo_clip_loss(logprobs, old_logprobs, advantages, mask, clip=0.2):
        o = objective(logprobs, old_logprobs, advantages, mask, clip, clip)
        share = algorithms.ppo_clip_loss(logprobs, old_logprobs, advantages, mask, clip)[1]
        return -algorithms.masked_mean(o, mask), share

    answer = locals()[name]
    for seed in range(6):  # whether it fails, not what is said of it, which takes ten times as long
        for hidden in (False, True):
            exam = Exam(exercises.get(name), seed, hidden)
            assert exam.examine(describe(answer), call_all(answer, exam.cases, False)).failing


def kl_with_infinite_gradients(logits_p, logits_q):
    logp, logq = logits_p.log_softmax(-1), logits_q.log_softmax(-1)
    p = logp.exp()
    return torch.where(p > 0, p * (logp - logq), 0.0).sum(-1)


def weights_that_trust_padding(logprobs, old_logprobs, mask, level="token"):
    right = algorithms.importance_weights(logprobs, old_logprobs, mask, level)
    return (logprobs - old_logprobs.detach()).exp() * mask if level == "token" else right


def weights_within_30(logprobs, old_logprobs, mask, level="token"):
    near = old_logprobs + (logprobs - old_logprobs).clamp(-30, 30)
    return algorithms.importance_weights(near, old_logprobs, mask, level)


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


def whitened_by_deviation(x, mask):
    mean = algorithms.masked_mean(x, mask)
    variance = algorithms.masked_mean((x - mean).square(), mask)
    return (x - mean) / (variance.sqrt() + 1e-8) * mask


def pass_at_k_of_anything(n, c, k):
    return 1 - torch.arange(n - c - k + 1, n - c + 1).prod().item() / max(
        torch.arange(n - k + 1, n + 1).prod().item(), 1
    )


def bootstrap_that_reseeds(correct, level=0.95, resamples=2000, seed=0):
    if not len(correct):
        raise ValueError
    torch.manual_seed(seed)
    means = correct.double()[torch.randint(len(correct), (resamples, len(correct)))].mean(1)
    return means.quantile((1 - level) / 2).item(), means.quantile((1 + level) / 2).item()


def step_that_switches_the_mode(policy, optimizer, rollouts, *args, **kwargs):
    policy.train()
    return algorithms.grpo_step(policy, optimizer, rollouts, *args, **kwargs)


@pytest.mark.parametrize(
    ("name", "fn"),
    [
        ("kl_divergence", kl_with_infinite_gradients),
        ("importance_weights", weights_that_trust_padding),
        ("importance_weights", weights_within_30),
        ("extract_answer", a_number_anywhere),
        ("extract_tagged_answer", an_earlier_pair),
        ("whiten", whitened_by_moments),
        ("whiten", whitened_by_deviation),
        ("pass_at_k", pass_at_k_of_anything),
        ("bootstrap_interval", bootstrap_that_reseeds),
        ("grpo_step", step_that_switches_the_mode),
    ],
)
def test_what_is_wrong_in_a_corner_fails_for_every_seed(name, fn):
    assert not any(result.passed for result in judged(name, fn, 4))


def test_a_set_has_no_order_and_its_choice_no_name():
    def majority_vote(answers):
        votes = {a for a in answers if a is not None}
        return max(sorted(votes, key=lambda a: a[::-1]), key=answers.count, default=None)

    result = check(majority_vote, seed=0)
    assert not result.passed and "tied" not in (result.mistake or "")
