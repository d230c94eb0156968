"""Each fault shows the signal that its row names, and a healthy run shows none of them.

A few steps on the embedded model. The reward, but for faults of the reward, is a
coin that the letters of a completion toss: most groups hold both sides of it, so that every step
has a gradient, and there is nothing to learn. Thresholds are cleared twice over, or as beside them.
"""

import pytest
import torch

from rlcourse.errors import UserError
from rlcourse.policy import Policy
from rlcourse.tasks import load_task
from rlcourse.training import load_recipe, train
from rlcourse.training.faults.catalog import FAULTS
from rlcourse.training.faults.faulty import empty_answer, unreadable_gold
from rlcourse.training.online.batch_learner import Parts
from rlcourse.training.recipes.methods import METHODS


@pytest.fixture(scope="module")
def tiny():
    return Policy.load("tiny", device="cpu")


@pytest.fixture(scope="module")
def steps_of(tiny):
    """The metrics of four steps with a fault, or without; each run is made once."""
    runs: dict = {}

    def made(fault=None, **settings):
        key = (fault, *sorted(settings.items()))
        if key not in runs:
            usual = {"steps": 4, "prompts_per_step": 6, "group_size": 4, "max_tokens": 32}
            usual |= {"warmup": 0, "lr": 1e-3, "eval_problems": 0, "device": "cpu"}
            recipe = load_recipe("grpo", warm_start=None, **(usual | settings))
            task = load_task("word_problems", train_size=64, evaluation_size=1)
            given = {"policy": tiny, "task": task, "reward": coin}
            runs[key] = train(recipe, **given, fault=fault, progress=False).metrics
        return runs[key]

    return made


def coin(completions):
    return torch.tensor([float(sum(map(ord, text)) % 2) for text in completions])


def of(steps, name):
    return [metrics[name] for metrics in steps]


def test_a_healthy_run_keeps_every_signal_in_its_range(steps_of, capsys):
    steps = steps_of()
    assert max(of(steps, "gap/mean")) < 1e-5  # rounding: 5e-7
    assert max(of(steps, "gap/max")) < 1e-3  # 2e-5
    assert of(steps, "loss_tokens") == [1.0] * 4
    assert max(of(steps, "advantages/equal_rewards")) == 0
    assert min(of(steps, "weights_changed")) > 0.99
    assert max(of(steps, "clip_ratio")) == 0
    assert capsys.readouterr().err == ""


def test_several_updates_of_a_healthy_run_clip_what_has_left_the_band(steps_of):
    for metrics in steps_of(num_iterations=4):
        both = metrics["clip_ratio/low"] + metrics["clip_ratio/high"]
        assert metrics["clip_ratio"] == pytest.approx(both, abs=1e-6)
        assert metrics["clip_ratio"] > 0 and metrics["ratio/max"] > 1.2
        assert metrics["gap/mean"] < 1e-5  # of the first update alone


def test_a_stale_sampler_opens_a_gap_that_grows(steps_of):
    gap = of(steps_of("stale_sampler", lr=1e-4), "gap/mean")
    assert gap[0] < 1e-5 and min(gap[1:]) > 1e-3  # .04 at least


@pytest.mark.slow
@pytest.mark.parametrize(
    "fault, low, high",
    [("missing_temperature", 0.01, 1), ("dropout", 0.01, 2)],
)
def test_faults_of_scoring_show_a_gap_before_anything_is_learned(steps_of, fault, low, high):
    metrics = steps_of(fault)[0]
    assert low < metrics["gap/mean"] < high
    assert metrics["loss_tokens"] == 1.0


def test_counted_padding_makes_all_lengths_equal_and_the_loss_too_long(steps_of):
    metrics = steps_of("padding_counted")[0]
    assert metrics["loss_tokens"] > 1.05 and metrics["gap/mean"] > 0.5
    assert metrics["tokens"] == 24 * metrics["completions/mean_length"]
    assert metrics["completions/mean_length"] > steps_of()[0]["completions/mean_length"]


def test_a_masked_eos_shows_in_the_tokens_of_the_loss_alone(steps_of):
    faulty, healthy = steps_of("masked_eos")[0], steps_of()[0]
    assert 0.8 < faulty["loss_tokens"] < 0.99  # one of 14 tokens is its completion's last
    same = ("reward/mean", "completions/mean_length", "entropy", "frac_reward_zero_std")
    assert [faulty[name] for name in same] == [healthy[name] for name in same]


def test_wrong_groups_give_advantages_to_completions_of_equal_reward(steps_of):
    assert max(of(steps_of("wrong_grouping"), "advantages/equal_rewards")) > 0.3


def test_a_ratio_of_one_reports_no_clipping_while_tokens_leave_the_band(steps_of):
    steps = steps_of("ratio_one")
    assert max(of(steps, "clip_ratio")) == 0
    assert max(of(steps, "clip_ratio/high")) > 0.005 and max(of(steps, "ratio/max")) > 1.3


@pytest.mark.slow
def test_a_rewarded_divergence_is_subtracted_from_the_loss(steps_of):
    """With one update a batch the loss is the penalty alone, β·KL, up to rounding (1e-7)."""
    wrong, right = steps_of("kl_sign", beta=0.5), steps_of(beta=0.5)
    assert max(of(wrong, "loss")[1:]) < -1e-3 and min(of(right, "loss")[1:]) > 1e-3


@pytest.mark.slow
def test_weights_in_bfloat16_do_not_move_at_a_small_learning_rate(steps_of):
    faulty = steps_of("bfloat16_weights", lr=3e-5)
    assert max(of(faulty, "weights_changed")) < 0.5
    assert min(of(faulty, "grad_norm")) > 0
    assert min(of(steps_of(lr=3e-5), "weights_changed")) > 0.9


def test_everything_is_cut_off_where_max_tokens_is_too_small(tiny):
    task = load_task("word_problems", train_size=64, evaluation_size=1)
    settings = {"steps": 1, "eval_problems": 0, "device": "cpu"}
    recipe = load_recipe("grpo", warm_start=None, **settings)
    run = train(recipe, policy=tiny, task=task, fault="all_truncated", progress=False)
    (metrics,) = run.metrics
    # The embedded model ends a third of its completions at once; after imitation it ends none.
    assert metrics["completions/clipped_ratio"] > 0.4
    # A short answer may be right now and then: in four draws of problems .94 to 1, and .01 at most.
    assert metrics["frac_reward_zero_std"] > 0.8 and metrics["accuracy"] < 0.1


GOLD = ["2 * 7 = 14 #### 14", "so #### 4", "so #### 4", "so #### 4"]
SAID = ["#### 9", "#### 4", "#### 5", "I do not know"]


@pytest.mark.parametrize(
    "fault, rewards",
    [
        (unreadable_gold, [1, 1, 0, 0]),
        (empty_answer, [0, 1, 0, 1]),
    ],
)
def test_faults_of_the_reward(fault, rewards):
    from rlcourse.tasks import extract_answer

    reward = fault(Parts(None, None, METHODS["grpo"], None, None)).reward
    assert reward(SAID, GOLD, extract_answer).tolist() == rewards


def test_a_fault_is_refused_where_it_has_no_place(policy, task, recipe):
    for algorithm, fault in [("ppo", "wrong_grouping"), ("rloo", "kl_sign")]:
        with pytest.raises(UserError, match=f"{algorithm} has no part that {fault}"):
            train(recipe(algorithm), policy=policy, task=task, fault=fault)
    with pytest.raises(UserError, match="sft has no setting fault"):
        train(recipe("sft"), policy=policy, task=task, fault="dropout")
    with pytest.raises(UserError, match="fault cannot be 'stale': "):
        train(recipe(), policy=policy, task=task, fault="stale")


def test_every_fault_has_a_function_or_brings_only_settings_left_at_their_default():
    from rlcourse.training.faults import faulty
    from rlcourse.training.faults.switched_on import with_settings

    for name, fault in FAULTS.items():
        assert fault.where == "settings" or callable(getattr(faulty, name))
        assert fault.what and fault.signal
        recipe = load_recipe("grpo", fault=name)
        found = with_settings(recipe, recipe.method)
        assert {key: getattr(found, key) for key in fault.settings} == fault.settings
        assert with_settings(found, found.method) == found  # as a resumed run asks again
    chosen = load_recipe("grpo", fault="all_truncated", max_tokens=12)
    assert with_settings(chosen, chosen.method).max_tokens == 12
