"""Lesson 09: its worked numbers, and a run that is pushed too far."""

import math

import pytest
import torch
from shared import as_written

from rlcourse import algorithms as A
from rlcourse import check
from rlcourse.training import load_recipe, train

REF, ONLY_B = torch.tensor([0.5, 0.3, 0.2]), torch.tensor([0.0, 1.0, 0.0])


def test_best_policy_of_the_text():
    best = A.optimal_policy(REF, ONLY_B, beta=1.0)
    assert best.tolist() == pytest.approx([0.330, 0.538, 0.132], abs=5e-4)
    assert A.optimal_policy(REF, ONLY_B, beta=0.5)[1].item() == pytest.approx(0.76, abs=5e-4)


def test_what_the_reference_never_says_stays_impossible_however_short_the_leash():
    best = A.optimal_policy(torch.tensor([0.6, 0.4, 0.0]), torch.tensor([0.0, 0.5, 60.0]), 0.05)
    assert best[2] == 0 and best.sum().item() == pytest.approx(1.0)


def shifted_policy(ref_probs, rewards, beta):
    weights = ref_probs * ((rewards - rewards.max()) / beta).exp()
    return weights / weights.sum()


def crossed_loss(
    chosen_logprobs, rejected_logprobs, ref_chosen_logprobs, ref_rejected_logprobs,
    beta=0.1, label_smoothing=0.0,
):  # fmt: skip
    return as_written(A.dpo_loss)(
        chosen_logprobs, rejected_logprobs, ref_rejected_logprobs, ref_chosen_logprobs,
        beta, label_smoothing,
    )  # fmt: skip


@pytest.mark.parametrize(
    "function, exercise, words",
    [
        (shifted_policy, "optimal_policy", "one that πref never gives"),
        (crossed_loss, "dpo_loss", "each completion against the other one's reference"),
    ],
)
def test_common_slips_are_named(tmp_path, monkeypatch, function, exercise, words):
    monkeypatch.setenv("RLCOURSE_HOME", str(tmp_path))
    for seed in range(3):
        assert words in check(function, exercise, seed=seed).mistake


def test_pairs_are_reported_in_words(tmp_path, monkeypatch):
    """Which rows make a pair is free where rewards are equal, so the report speaks of rewards."""
    monkeypatch.setenv("RLCOURSE_HOME", str(tmp_path))

    def worse_first(rewards, group_size):
        return as_written(A.preference_pairs)(rewards, group_size).flip(1)

    message = check(worse_first, "preference_pairs", seed=0).message
    assert "'group 0: reward 1 over 0'" in message and "'group 0: reward 0 over 1'" in message


@pytest.mark.parametrize("beta", [1.0, 0.5, 0.1])
def test_answers_of_equal_reward_keep_their_ratio(beta):
    a, _, c = A.optimal_policy(REF, ONLY_B, beta).tolist()
    assert a / c == pytest.approx(2.5, rel=1e-4)


def test_no_random_policy_of_the_picture_lies_above_the_line():
    generator = torch.Generator().manual_seed(1)
    start = torch.randn(6, generator=generator).softmax(0)
    worth = torch.randn(6, generator=generator)
    others = (start.log() + 1.5 * torch.randn(3000, 6, generator=generator)).softmax(1)
    for beta in (0.1, 0.5, 2.0):
        best = A.optimal_policy(start, worth, beta)

        def earned(policy, beta=beta):
            distance = A.kl_divergence(policy.log(), start.log().expand_as(policy))
            return policy @ worth - beta * distance

        assert earned(others).max() < earned(best)


def test_twice_as_likely_is_worth_half_of_ln_2_at_half_beta():
    logprobs, ref = torch.tensor([0.6, 0.2]).log(), torch.tensor([0.3, 0.4]).log()
    rewards = A.implicit_rewards(logprobs, ref, beta=0.5)
    assert rewards.tolist() == pytest.approx([0.347, -0.347], abs=5e-4)


def test_pair_of_the_text():
    loss, chosen, rejected = A.dpo_loss(*torch.tensor([[-4.0], [-6.0], [-5.0], [-5.0]]))
    assert loss.item() == pytest.approx(0.598, abs=5e-4)
    assert (chosen.item(), rejected.item()) == pytest.approx((0.1, -0.1))


def test_one_wrong_label_in_ten_wants_a_margin_of_two_point_two():
    margins = torch.linspace(-2, 8, 10_001)
    zero = torch.zeros(1)
    losses = [A.dpo_loss(m[None], zero, zero, zero, 1.0, 0.1)[0] for m in margins[::10]]
    best = margins[::10][torch.stack(losses).argmin()].item()
    assert best == pytest.approx(math.log(9), abs=0.02) == pytest.approx(2.2, abs=0.02)


def test_groups_of_the_text():
    one_right = torch.tensor([0.0, 0.0, 1.0, 0.0])
    two_groups = torch.tensor([1.0, 0.0, 1.0, 0.0, 1.0, 1.0, 1.0, 1.0])
    assert A.preference_pairs(one_right, 4)[:, 0].tolist() == [2]
    assert len(A.preference_pairs(two_groups, 4)) == 2


@pytest.mark.slow
def test_pushed_too_far_loss_falls_and_so_do_both_log_ratios(warm_start):
    recipe = load_recipe("dpo", seed=3, eval_problems=100, eval_samples=1)
    hasty = recipe.but(lr=2e-4, schedule="constant", beta=0.1, steps=60)
    calm, wild = (train(r, policy=warm_start, progress=False) for r in (recipe, hasty))
    assert calm.metrics[0]["loss"] == pytest.approx(math.log(2), abs=1e-4)
    assert calm.after.accuracy.value > calm.before.accuracy.value + 0.2
    last, wild_last = calm.metrics[-1], wild.metrics[-1]
    assert wild_last["loss"] < last["loss"]
    assert wild_last["rewards/rejected"] < wild_last["rewards/chosen"] < 0
    assert wild.after.accuracy.value < calm.after.accuracy.value - 0.2


@pytest.mark.slow
def test_a_lower_rate_or_an_earlier_stop_mends_the_hasty_run_and_a_shorter_leash_does_not(
    warm_start,
):
    small = {"questions": 200, "prompts_per_step": 16, "steps": 40, "eval_samples": 1}
    good = load_recipe("dpo", seed=3, eval_problems=100, **small)
    hasty = good.but(lr=2e-4, schedule="constant", beta=0.1, eval_every=20)
    wild, slow, falling, leashed = (
        train(hasty.but(**back), policy=warm_start, progress=False)
        for back in ({}, {"lr": good.lr}, {"schedule": good.schedule}, {"beta": good.beta})
    )
    early, late = (m["eval/accuracy"] for m in wild.metrics if "eval/accuracy" in m)
    ends = {"slow": slow, "falling": falling, "leashed": leashed}
    ends = {name: run.after.accuracy.value for name, run in ends.items()} | {"late": late}
    # Five warm starts: by 0.20 or more, then by 0.09 and 0.13 or more.
    assert min(ends["slow"], ends["falling"]) > late + 0.1
    assert ends["slow"] > ends["leashed"] and early > late

    def at_the_end(run, what):
        return sum(step[what] for step in run.metrics[-5:]) / 5

    def gone(run, which):  # a log-ratio in nats
        return at_the_end(run, f"rewards/{which}") / run.recipe.beta

    kept = min(gone(run, "rejected") for run in (slow, falling))
    assert kept > max(gone(run, "rejected") for run in (wild, leashed))  # by 3 to 6 nats
    assert gone(wild, "chosen") < min(gone(slow, "chosen"), gone(falling, "chosen"))
    walked = [sum(step["lr"] for step in run.metrics) for run in (wild, leashed, falling, slow)]
    assert walked == pytest.approx([0.0075, 0.0075, 0.0041, 0.00375])
    assert sum(step["lr"] for step in wild.metrics[:20]) == pytest.approx(0.0035)
