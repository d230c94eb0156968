"""Learning from pairs: where they come from, that both methods learn, and whose functions do it."""

import json

import pytest
import torch
from echo import likes_sevens, quiet, spied, weights

from rlcourse import algorithms
from rlcourse.errors import UserError
from rlcourse.tasks import correctness_reward
from rlcourse.training import (
    Pair,
    RewardModel,
    load_run,
    pair_rewards,
    read_pairs,
    write_pairs,
)


@pytest.fixture
def dpo(recipe):
    settings = {"beta": 0.1, "group_size": 8, "prompts_per_step": 10, "questions": 10}
    return lambda **changes: recipe("dpo", **settings | changes)


@pytest.fixture
def judge(recipe):
    settings = {"group_size": 8, "prompts_per_step": 10, "questions": 10, "lr": 1e-2}
    return lambda **changes: recipe("reward_model", **settings | changes)


@pytest.fixture
def file(tmp_path):
    """Of two digits, the larger is the right answer."""
    path = tmp_path / "pairs.jsonl"
    rows = [
        {"prompt": f"{a} {b}", "chosen": f"#### {max(a, b)}", "rejected": f"#### {min(a, b)}"}
        for a in range(10)
        for b in range(10)
        if a != b
    ]
    path.write_text("\n".join(map(json.dumps, rows)) + "\n")
    return path


# DPO


def mean_of_the_last(steps, metrics, name):
    return sum(m[name] for m in metrics[-steps:]) / steps


def test_dpo_puts_what_the_pairs_prefer_first(warm, task, dpo):
    """Whether it also says so more often is another matter: DPO may make both texts rarer."""
    settings = dpo(steps=40, lr=5e-3, group_size=32, eval_problems=0)
    run = quiet(settings, policy=warm, task=task, reward=likes_sevens)
    first = run.metrics[0]
    assert first["loss"] == pytest.approx(0.693147, abs=1e-4)  # log 2: it is the reference
    assert abs(first["rewards/margins"]) < 1e-5
    # Three seeds: 1.0, and a margin of 1.9 at least.
    assert mean_of_the_last(5, run.metrics, "rewards/accuracies") > 0.9
    assert mean_of_the_last(5, run.metrics, "rewards/margins") > 0.3


def test_a_students_functions_are_those_that_dpo_trains_with(warm, task, dpo):
    called = set()

    mine = [algorithms.dpo_loss, algorithms.preference_pairs, algorithms.sequence_logprobs]
    settings = dpo(eval_problems=0)
    plain = quiet(settings, policy=warm, task=task)
    same = quiet(settings, policy=warm, task=task, functions=[spied(f, called) for f in mine])
    assert called == {f.__name__ for f in mine}
    assert torch.equal(weights(plain.policy), weights(same.policy))


def test_another_loss_of_the_pairs_may_return_a_scalar_alone(warm, task, dpo):
    def ipo(chosen_logprobs, rejected_logprobs, ref_chosen_logprobs, ref_rejected_logprobs, beta):
        margin = chosen_logprobs - rejected_logprobs - ref_chosen_logprobs + ref_rejected_logprobs
        return (margin - 1 / (2 * beta)).square().mean()

    run = quiet(dpo(eval_problems=0), policy=warm, task=task, loss=ipo)
    assert run.metrics[0]["loss"] == pytest.approx(25, abs=1e-3)  # (0 − 1/(2·0.1))²
    assert "rewards/margins" in run.metrics[0]


def unfinished(rewards, group_size):
    raise NotImplementedError


def floats(rewards, group_size):
    return torch.zeros(3, 2)


def outside(rewards, group_size):
    return torch.tensor([[0, 10**6]])


@pytest.mark.parametrize(
    ("function", "sentence"),
    [
        (unfinished, "finish preference_pairs first"),
        (floats, r"preference_pairs must return pairs of row numbers, \(n, 2\) long"),
        (outside, "preference_pairs returned a row outside 0 … 79"),
    ],
)
def test_pairs_that_cannot_be_used_are_told_why(warm, task, dpo, function, sentence):
    def preference_pairs(rewards, group_size):
        return function(rewards, group_size)

    with pytest.raises(UserError, match=sentence):
        quiet(dpo(eval_problems=0), policy=warm, task=task, functions=[preference_pairs])


def test_a_function_that_the_algorithm_does_not_use_is_refused(warm, task, dpo, recipe):
    def sequence_logprob(logprobs, mask):
        return logprobs.sum(1)

    with pytest.raises(UserError, match=r"dpo uses no function .*did you mean 'sequence_logprobs'"):
        quiet(dpo(), policy=warm, task=task, functions=[sequence_logprob])
    with pytest.raises(UserError, match="grpo uses no function 'dpo_loss': did you mean 'grpo_lo"):
        quiet(recipe(), policy=warm, task=task, functions=[algorithms.dpo_loss])
    with pytest.raises(UserError, match="dpo learns from pairs: step= cannot take the place"):
        quiet(dpo(), policy=warm, task=task, step=algorithms.grpo_step)


def test_without_a_difference_there_is_nothing_to_compare(warm, task, dpo):
    def fair(completions):
        return torch.ones(len(completions))

    with pytest.raises(UserError, match="nothing to compare: raise questions"):
        quiet(dpo(), policy=warm, task=task, reward=fair)


# Files of pairs


@pytest.mark.parametrize(
    ("line", "sentence"),
    [
        ("{", "line 1 is not JSON"),
        ('["a"]', "line 1 must hold the texts prompt, chosen, rejected"),
        ('{"prompt": "a", "chosen": "b"}', "line 1 must hold the texts prompt, chosen, rejected"),
        ('{"prompt": "a", "chosen": ["b"], "rejected": "c"}', "line 1 must hold the texts"),
        ("", "holds no pairs"),
    ],
)
def test_a_bad_line_of_a_file_is_named(tmp_path, line, sentence):
    (tmp_path / "pairs.jsonl").write_text(line)
    with pytest.raises(UserError, match=sentence):
        read_pairs(tmp_path / "pairs.jsonl")
    with pytest.raises(UserError, match="cannot be read"):
        read_pairs(tmp_path / "none.jsonl")


def test_the_pairs_that_were_sampled_are_kept_and_can_be_trained_on_again(
    tmp_path, warm, task, dpo
):
    first = quiet(dpo(), tmp_path / "first", policy=warm, task=task)
    pairs = read_pairs(tmp_path / "first" / "pairs.jsonl")
    for pair in pairs:
        chosen, rejected = correctness_reward(
            [pair.chosen, pair.rejected], [f"#### {pair.prompt}"] * 2
        )
        assert chosen > rejected
    again = dpo(pairs=str(tmp_path / "first" / "pairs.jsonl"))
    second = quiet(again, policy=warm, task=task)
    assert torch.equal(weights(first.policy), weights(second.policy))


# Reward models


@pytest.mark.slow
def test_a_reward_model_learns_who_is_right_and_can_be_saved_and_loaded(
    tmp_path, policy, task, judge, file
):
    settings = judge(pairs=str(file), steps=60, prompts_per_step=30, eval_every=30)
    run = quiet(settings, tmp_path / "run", policy=policy, task=task)
    assert run.policy is None and run.before is None
    assert run.metrics[0]["loss"] == pytest.approx(0.693147, abs=1e-4)  # all are worth 0
    assert run.metrics[0]["rewards/accuracies"] == 0
    # Six seeds: .84 at least.
    assert mean_of_the_last(10, run.metrics, "rewards/accuracies") > 0.7
    assert run.metrics[-1]["eval/pair_accuracy"] == pytest.approx(run.pair_accuracy.value, abs=1e-4)
    assert "held-out pairs put in the right order" in run.summary()

    assert "Held-out pairs" in (tmp_path / "run" / "report.html").read_text()

    loaded = load_run(tmp_path / "run", device="cpu")
    assert loaded.pair_accuracy == run.pair_accuracy
    saved = RewardModel.load(tmp_path / "run" / "reward_model", device="cpu")
    pairs = read_pairs(file)
    for one, two in zip(
        pair_rewards(run.reward_model, pairs), pair_rewards(saved, pairs), strict=True
    ):
        torch.testing.assert_close(one, two)
    with pytest.raises(UserError, match="holds no reward model"):
        RewardModel.load(tmp_path)


def test_held_out_pairs_are_never_trained_on(policy, task, judge, tmp_path, monkeypatch):
    path = tmp_path / "pairs.jsonl"
    write_pairs(path, [Pair(f"{a} {b}", "#### 1", "#### 2") for a in range(5) for b in range(8)])
    asked = []
    batch = RewardModel.batch

    def spy(self, questions, completions, system=None):
        asked.append(set(questions))
        return batch(self, questions, completions, system)

    monkeypatch.setattr(RewardModel, "batch", spy)
    settings = judge(pairs=str(path), steps=9, prompts_per_step=8)
    quiet(settings, policy=policy, task=task)
    trained, held_out = set().union(*asked[:9]), set().union(*asked[9:])
    assert held_out and not trained & held_out
    assert len(trained) + len(held_out) == 40


@pytest.mark.slow
def test_a_reward_model_is_a_reward_to_train_with(warm, task, judge, recipe):
    model = quiet(judge(steps=60), policy=warm, task=task, reward=likes_sevens).reward_model
    settings = recipe(steps=30, prompts_per_step=10, group_size=8, lr=5e-3, eval_problems=0)
    run = quiet(settings, policy=warm, task=task, reward=model)
    first, last = run.metrics[0], run.metrics[-1]
    assert last["rewards/custom/mean"] > first["rewards/custom/mean"]
    assert "accuracy" in last  # the true reward, to compare the proxy with


def test_a_students_functions_are_those_that_train_the_reward_model(warm, task, judge):
    def last_token_index(mask):
        return mask.long().sum(1) * 0  # the first token, which says nothing about the answer

    settings = judge(steps=5)
    plain = quiet(settings, policy=warm, task=task).reward_model
    mine = quiet(settings, policy=warm, task=task, functions=[last_token_index]).reward_model
    assert not torch.equal(weights(plain.reader), weights(mine.reader))
    assert mine.last_token_index is last_token_index

    def last_token_index(mask):
        return mask.sum(1)  # one too far

    with pytest.raises(UserError, match="last_token_index must return positions in its rows"):
        quiet(settings, policy=warm, task=task, functions=[last_token_index])


def test_the_reward_of_a_completion_does_not_depend_on_its_neighbors(warm, task, judge):
    model = quiet(judge(steps=20), policy=warm, task=task).reward_model
    questions, completions = ["1", "2 3 4", "5"], ["#### 1", "#### 2 2 2", ""]
    together = model(questions, completions)
    alone = torch.cat([model([q], [c]) for q, c in zip(questions, completions, strict=True)])
    torch.testing.assert_close(together, alone)
    assert together.shape == (3,) and not together.requires_grad
    assert model([], []).shape == (0,)


# Resuming
