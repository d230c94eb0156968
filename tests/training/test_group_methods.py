"""Dr. GRPO, DAPO, GSPO and CISPO learn, from groups that say something."""

import pytest
import torch
from echo import quiet, weights

from rlcourse import algorithms
from rlcourse.errors import UserError
from rlcourse.training.data.batches import joined
from rlcourse.training.online.dynamic_sampling import (
    draw_enough,
    with_overlong_penalty,
    with_signal,
)
from rlcourse.training.recipes.methods import METHODS


def batch(policy, rewards, seed):
    generator = torch.Generator().manual_seed(seed)
    prompts = [f"{seed}{'1' * i}?" for i in range(len(rewards) // 4)]
    rollouts = policy.sample(prompts, group_size=4, max_tokens=4 + seed, generator=generator)
    rewards = torch.tensor(rewards)
    return rollouts.__class__(**vars(rollouts) | {"rewards": rewards}), {"correctness": rewards}


EQUAL, MIXED = [0.0] * 4, [1.0, 0.0, 0.0, 1.0]


def test_joined_batches_keep_every_row_as_it_was(policy):
    one, two = batch(policy, MIXED, 1)[0], batch(policy, EQUAL + MIXED, 3)[0]
    both = joined([one, two])
    assert len(both) == 12 and both.rewards.tolist() == MIXED + EQUAL + MIXED
    torch.testing.assert_close(policy.logprobs(both), both.old_logprobs)
    assert policy.decode(both) == policy.decode(one) + policy.decode(two)


def test_it_asks_until_enough_groups_have_a_signal(policy, recipe):
    asked = []
    rewards = {0: EQUAL + MIXED, 1: EQUAL + EQUAL, 2: MIXED + MIXED, 3: MIXED + MIXED}

    def draw(attempt):
        asked.append(attempt)
        return batch(policy, rewards[attempt], attempt)

    settings = recipe("dapo", prompts_per_step=2, group_size=4, resample=9)
    rollouts, parts = draw_enough(draw, settings, METHODS["dapo"])
    assert asked == [0, 1, 2]  # one, none, two: three of the two that are wanted
    assert len(rollouts) == len(parts["correctness"]) == 24
    kept, facts = with_signal(rollouts, settings, METHODS["dapo"])
    assert kept.rewards.tolist() == MIXED + MIXED and facts["groups_drawn"] == 6
    expected = rollouts.rows([*range(4, 8), *range(16, 20)])  # the first two with a signal
    assert torch.equal(kept.tokens, expected.tokens)


def test_it_stops_asking_after_so_many_attempts(policy, recipe):
    settings = recipe("dapo", prompts_per_step=2, group_size=4, resample=1)
    drawn, _ = draw_enough(lambda k: batch(policy, EQUAL * 2, k), settings, METHODS["dapo"])
    kept, _ = with_signal(drawn, settings, METHODS["dapo"])
    assert len(drawn) == 16 and len(kept) == 8


def test_overlong_completions_lose_reward_after_the_groups_are_chosen(policy, recipe):
    rollouts, _ = batch(policy, MIXED + EQUAL, 4)
    settings = recipe("dapo", prompts_per_step=2, group_size=4, max_tokens=8, overlong_buffer=8)
    kept, _ = with_signal(rollouts, settings, METHODS["dapo"])
    kept, facts = with_overlong_penalty(kept, settings, METHODS["dapo"])
    lengths = rollouts.mask.sum(1)[:4]
    assert kept.rewards.tolist() == pytest.approx((torch.tensor(MIXED) - lengths / 8).tolist())
    assert facts["rewards/overlong/mean"] == pytest.approx(-lengths.float().mean().item() / 8)


def test_a_run_where_nothing_has_a_signal_changes_nothing(warm, task, recipe):
    settings = recipe("dapo", steps=2, eval_problems=0)
    run = quiet(
        settings, policy=warm, task=task, reward=lambda completions: torch.ones(len(completions))
    )
    assert torch.equal(weights(run.policy), weights(warm))
    assert run.metrics[0]["groups_drawn"] == 5 * 3  # prompts, and two attempts more


def test_the_loss_gets_both_clips(warm, task, recipe):
    seen = []

    def dapo_loss(logprobs, old_logprobs, advantages, mask, clip_low, clip_high):
        seen.append((clip_low, clip_high))
        return algorithms.dapo_loss(logprobs, old_logprobs, advantages, mask)

    changes = {"steps": 1, "eval_problems": 0}
    for clips in ({"clip": 0.1}, {"clip": 0.1, "clip_high": 0.3}):
        quiet(recipe("dapo", **changes, **clips), policy=warm, task=task, functions=[dapo_loss])
    assert set(seen) == {(0.1, 0.1), (0.1, 0.3)}


def test_bad_functions_and_settings_are_named(warm, task, recipe):
    def informative_groups(rewards, group_size):
        return rewards > 0  # of completions

    with pytest.raises(UserError, match="informative_groups must return a tensor of shape"):
        quiet(recipe("dapo"), policy=warm, task=task, functions=[informative_groups])

    def overlong_penalty(lengths, max_tokens, buffer):
        raise NotImplementedError

    settings = recipe("dapo", overlong_buffer=2)
    with pytest.raises(UserError, match="finish overlong_penalty first"):
        quiet(settings, policy=warm, task=task, functions=[overlong_penalty])
    with pytest.raises(UserError, match="overlong_buffer must be at most max_tokens, 8, not 9"):
        recipe("dapo", overlong_buffer=9)
    for algorithm in ("dr_grpo", "dapo", "gspo"):
        with pytest.raises(UserError, match="group_size must be at least 2"):
            recipe(algorithm, group_size=1)
