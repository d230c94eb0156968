"""The loop: what it trains on, in which order, at which learning rate, and when it refuses."""

import math

import pytest
import torch
from echo import having, likes_sevens, quiet, weights

from rlcourse import algorithms
from rlcourse.training.data import scoring
from rlcourse.training.data.batches import minibatches, problems_of_step
from rlcourse.training.measuring import evaluating
from rlcourse.training.networks.optimizer import NonFinite, autocast, set_learning_rate

SLOW = ["rejection_sampling", "reinforce", "rloo", "ppo", "dr_grpo", "dapo", "gspo", "cispo"]


@pytest.mark.parametrize(
    "algorithm", ["grpo", *(pytest.param(name, marks=pytest.mark.slow) for name in SLOW)]
)
def test_every_algorithm_raises_the_reward_it_is_given(policy, task, recipe, algorithm):
    """From a policy that knows nothing: half taught, some say "7" where it is the answer only."""

    changes = {"steps": 30, "prompts_per_step": 10, "group_size": 8, "lr": 5e-3, "eval_problems": 0}
    # The constant that Dr. GRPO divides by is the limit on length, which nothing here reaches.
    changes |= having(algorithm, num_iterations=2, overlong_buffer=2)
    run = quiet(recipe(algorithm, **changes), policy=policy, task=task, reward=likes_sevens)
    rewards = [m["reward/mean"] for m in run.metrics]
    # Four seeds: .34 at most, then .94 at least.
    assert sum(rewards[:3]) / 3 < 0.5
    assert sum(rewards[-3:]) / 3 > 0.8


def test_imitation_learns_its_demonstrations(policy, task, recipe):
    lesson = recipe("sft", steps=150, prompts_per_step=10, lr=1e-2)
    run = quiet(lesson, policy=policy, task=task)
    assert float(run.before.accuracy) == 0.0
    # Five seeds: every answer right, and a loss below .1.
    assert float(run.after.accuracy) > 0.7
    assert run.metrics[-1]["loss"] < 0.5 < 2 < run.metrics[0]["loss"]


def test_the_seed_decides_everything(warm, task, recipe):
    runs = [quiet(recipe(seed=seed), policy=warm, task=task) for seed in (0, 0, 1)]
    assert torch.equal(weights(runs[0].policy), weights(runs[1].policy))
    assert not torch.equal(weights(runs[0].policy), weights(runs[2].policy))


def test_the_policy_passed_in_is_left_as_it_was(policy, task, recipe):
    before = weights(policy).clone()
    run = quiet(recipe("sft"), policy=policy, task=task)
    assert torch.equal(weights(policy), before)
    assert not torch.equal(weights(run.policy), before)


def test_a_loss_and_estimator_passed_in_are_those_that_train(warm, task, recipe):
    calls = []

    def my_loss(logprobs, old_logprobs, advantages, mask, clip):
        calls.append(clip)
        return algorithms.ppo_clip_loss(logprobs, old_logprobs, advantages, mask, clip)

    def my_advantages(rewards, group_size):
        return algorithms.group_mean_advantages(rewards, group_size)

    plain = quiet(recipe(clip=0.3), policy=warm, task=task)
    mine = quiet(recipe(clip=0.3), policy=warm, task=task, loss=my_loss, advantages=my_advantages)
    assert set(calls) == {0.3}
    assert not torch.equal(weights(mine.policy), weights(plain.policy))


def test_the_first_update_starts_at_ratio_one_and_the_reference(warm, task, recipe):
    seen = []

    def spy(logprobs, old_logprobs, ref_logprobs, advantages, mask):
        seen.append((logprobs.detach(), old_logprobs, ref_logprobs))
        return -(logprobs * advantages[:, None] * mask).sum()

    quiet(recipe(steps=1, beta=0.1, num_iterations=3), policy=warm, task=task, loss=spy)
    logprobs, old, ref = seen[0]
    torch.testing.assert_close(logprobs, old)
    torch.testing.assert_close(ref, old)
    assert not torch.allclose(seen[-1][0], old)  # the policy moved
    assert torch.equal(seen[-1][1], old)  # the old log-probs did not
    assert torch.equal(seen[-1][2], ref)


def test_an_infinite_gradient_ends_the_run_too(warm, task, recipe):
    def steep(logprobs, mask):
        return (logprobs.masked_fill(mask, 0).sum() + 0 * logprobs.sum()).sqrt()

    with pytest.raises(NonFinite, match=r"gradient's length is (nan|inf) at step 1"):
        quiet(recipe(eval_problems=0), policy=warm, task=task, loss=steep)


def test_every_epoch_shows_every_problem_once(task):
    seen = [p for step in range(10) for p in problems_of_step(task.train, 3, step, seed=1)]
    first, second, third = seen[:10], seen[10:20], seen[20:30]
    for epoch in (first, second, third):
        assert sorted(p.question for p in epoch) == sorted(p.question for p in task.train)
    assert first != second != third


def test_minibatches_share_the_rows_out(warm, recipe):
    rollouts = warm.sample(["1?", "2 2?", "3?"], group_size=4, max_tokens=6)
    settings = recipe(num_iterations=2, minibatches=3)
    batches = list(minibatches(rollouts, settings, torch.Generator().manual_seed(0)))
    assert [len(batch) for batch in batches] == [4] * 6
    for half in (batches[:3], batches[3:]):
        total = sum(batch.old_logprobs.sum() for batch in half)
        torch.testing.assert_close(total, rollouts.old_logprobs.sum())
    for batch in batches:
        assert batch.mask.any(0).all() and batch.prompt_mask.any(0).all()  # nothing but padding
        torch.testing.assert_close(warm.logprobs(batch), batch.old_logprobs)


def test_the_learning_rate_ramps_up_and_then_follows_its_schedule(recipe):
    optimizer = torch.optim.SGD([torch.zeros(1, requires_grad=True)], lr=1.0)
    settings = recipe(lr=0.1, warmup=3, steps=13, schedule="linear")
    rates = [set_learning_rate(optimizer, settings, step) for step in range(13)]
    assert rates[:4] == pytest.approx([0.025, 0.05, 0.075, 0.1])
    assert rates[3:] == pytest.approx([0.1 - 0.01 * i for i in range(10)])
    assert optimizer.param_groups[0]["lr"] == rates[-1] > 0
    constant = settings.but(schedule="constant")
    assert set_learning_rate(optimizer, constant, 12) == pytest.approx(0.1)
    cosine = settings.but(schedule="cosine")
    rates = [set_learning_rate(optimizer, cosine, step) for step in range(13)]
    assert rates[:4] == pytest.approx([0.025, 0.05, 0.075, 0.1])
    assert rates[8] == pytest.approx(0.05) and rates[3:] == sorted(rates[3:], reverse=True)
    assert rates[12] == pytest.approx(0.1 * math.cos(math.pi * 0.45) ** 2) != 0


def test_metrics_are_those_of_the_rollouts(warm, task, recipe):
    run = quiet(
        recipe(steps=1, rewards={"correctness": 2.0, "format": 1.0}), policy=warm, task=task
    )
    (m,) = run.metrics
    assert m["step"] == 1
    assert m["reward/mean"] == pytest.approx(
        2 * m["rewards/correctness/mean"] + m["rewards/format/mean"], abs=1e-5
    )
    assert m["accuracy"] == m["rewards/correctness/mean"]
    assert 0 < m["entropy"] < torch.tensor(18.0).log()
    assert m["completions/mean_length"] * 20 == pytest.approx(m["tokens"])
    assert 0 <= m["completions/clipped_ratio"] <= 1
    assert run.seconds == pytest.approx(m["seconds"]) and run.tokens == m["tokens"]


def test_rejection_sampling_without_a_right_answer_changes_nothing(policy, task, recipe):
    run = quiet(recipe("rejection_sampling", eval_problems=0), policy=policy, task=task)
    assert [m["kept"] for m in run.metrics] == [0, 0, 0, 0]
    assert torch.equal(weights(run.policy), weights(policy))


def test_bfloat16_arithmetic_keeps_float32_weights(warm, task, recipe):
    assert autocast(torch.device("cpu"), "bfloat16").fast_dtype == torch.bfloat16
    run = quiet(recipe(dtype="bfloat16"), policy=warm, task=task)
    assert {p.dtype for p in run.policy.parameters()} == {torch.float32}
    assert not torch.equal(weights(run.policy), weights(warm))


def test_bfloat16_updates_see_the_weights_that_the_last_one_left(warm, task, recipe):
    settings = {"num_iterations": 2, "steps": 1, "lr": 0.02, "warmup": 0, "eval_problems": 0}
    moved = {}
    for dtype in ("float32", "bfloat16"):
        run = quiet(recipe("rloo", dtype=dtype, **settings), policy=warm, task=task)
        moved[dtype] = run.metrics[0]["kl_old"]
    # Weights that the last update did not reach would leave it at 0. Ten seeds: .74 at least.
    assert moved["bfloat16"] > 0.3 * moved["float32"] > 0


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_a_policy_that_has_not_moved_has_no_distance_from_its_reference(
    policy, task, recipe, dtype
):
    """Else the KL penalty trains on rounding noise, which AdamW makes as large as any gradient."""
    settings = {"beta": 0.1, "steps": 1, "eval_problems": 0, "dtype": dtype}
    run = quiet(recipe("grpo", **settings), policy=policy, task=task)  # it earns nothing at all
    assert run.metrics[0]["reward/mean"] == 0
    assert run.metrics[0]["kl"] < 1e-12 and run.metrics[0]["grad_norm"] < 1e-7


def test_dropout_stays_off(policy, task, recipe):
    policy.train()
    run = quiet(recipe("sft", eval_problems=0), policy=policy, task=task)
    assert not run.policy.training
    assert policy.training


def test_the_length_of_a_completion_can_be_a_part_of_its_reward(policy, task, recipe, monkeypatch):
    monkeypatch.setattr(scoring, "length_reward", lambda lengths: 0.5 * (lengths < 8).float())
    settings = recipe(steps=1, rewards={"length": 2.0}, eval_problems=0, max_tokens=9)
    (m,) = quiet(settings, policy=policy, task=task).metrics
    assert 0 < m["rewards/length/mean"] < 0.5  # some of 20 end early
    assert m["reward/mean"] == pytest.approx(m["accuracy"] + 2 * m["rewards/length/mean"], abs=1e-6)


def test_evaluations_have_a_precision_of_their_own(policy, task, recipe, monkeypatch):
    found, autocast = [], evaluating.autocast
    monkeypatch.setattr(
        evaluating, "autocast", lambda device, dtype: found.append(dtype) or autocast(device, dtype)
    )
    for changes in ({}, {"eval_dtype": "float32"}, {"dtype": "float32", "eval_dtype": "bfloat16"}):
        settings = recipe(**{"dtype": "bfloat16", "steps": 1, "eval_every": 1} | changes)
        quiet(settings, policy=policy, task=task)
    assert found == ["bfloat16"] * 3 + ["float32"] * 3 + ["bfloat16"] * 3
