"""What a run prints while it trains, and that it prints it once."""

import pytest
from echo import by_length

from rlcourse.training import train
from rlcourse.training.measuring.alarms import Alarms

HEALTHY = {
    "step": 1,
    "gap/mean": 5e-7,
    "loss_tokens": 1.0,
    "advantages/equal_rewards": 0.0,
    "completions/clipped_ratio": 0.1,
    "weights_changed": 1.0,
    "grad_norm": 0.3,
    "frac_reward_zero_std": 0.4,
    "accuracy": 0.2,
}


def said(recipe, steps, **changed):
    alarms = Alarms(recipe)
    return [alarms.heard(HEALTHY | changed | {"step": n + 1}) for n in range(steps)]


def test_a_healthy_run_is_silent(recipe):
    assert said(recipe(), 20) == [[]] * 20


@pytest.mark.parametrize(
    "changed, after, words",
    [
        ({"gap/mean": 0.04}, 1, "differ by 0.04 nats"),
        ({"loss_tokens": 0.95}, 1, "0.95 tokens for each one that was written"),
        ({"loss_tokens": 1.6}, 1, "does the mask end at the EOS"),
        ({"advantages/equal_rewards": 0.5}, 1, "compared with those of its own question"),
        ({"completions/clipped_ratio": 0.98}, 3, "98% of the completions are cut off"),
        ({"weights_changed": 0.02}, 3, "only 2% of the weights change"),
        ({"frac_reward_zero_std": 1.0, "accuracy": 0.0}, 5, "nothing left to learn from"),
    ],
)
def test_a_signal_out_of_its_range_is_said_once_and_after_so_many_steps(
    recipe, changed, after, words
):
    heard = said(recipe(), 12, **changed)
    assert [len(sentences) for sentences in heard] == [int(n + 1 == after) for n in range(12)]
    assert f"step {after}: " in heard[after - 1][0] and words in heard[after - 1][0]


def test_weights_that_have_no_gradient_need_not_move(recipe):
    assert said(recipe(), 5, weights_changed=0.0, grad_norm=0.0) == [[]] * 5


def test_bfloat16_rounds_more(recipe):
    assert said(recipe(dtype="bfloat16"), 1, **{"gap/mean": 0.02}) == [[]]
    assert said(recipe(), 1, **{"gap/mean": 0.02}) != [[]]


def test_missing_metrics_are_no_alarm(recipe):
    assert Alarms(recipe()).heard({"step": 1, "loss": 0.5}) == []


def test_a_run_with_a_fault_warns_on_stderr(policy, task, recipe, capsys):
    settings = recipe(eval_problems=0, rewards={"correctness": 0.0, "format": 0.0}, steps=3)
    train(
        settings,
        policy=policy,
        task=task,
        fault="padding_counted",
        reward=by_length,
        progress=False,
    )
    said = capsys.readouterr().err
    assert said.count("does the mask end at the EOS") == 1 and "rlcourse: step 1: " in said
