"""Sampler, old policy, trainer and reference: each option does what it says, and resumes."""

import pytest
import torch
from echo import likes_sevens, quiet

from rlcourse import algorithms
from rlcourse.errors import UserError
from rlcourse.training import load_recipe
from rlcourse.training.online.pipeline import Pipeline


class Seen:
    """A loss that remembers what it was given at each update."""

    def __init__(self):
        self.calls = []

    def __call__(self, logprobs, old_logprobs, advantages, mask):
        given = (logprobs.detach(), old_logprobs, advantages, mask)
        self.calls.append(tuple(x.clone() for x in given))
        return algorithms.dapo_loss(logprobs, old_logprobs, advantages, mask)

    def gaps(self):
        """How far the log-probs of each update are from the old ones."""
        return [float(((new - old) * mask).abs().max()) for new, old, _, mask in self.calls]


@pytest.mark.parametrize(("lag", "steps"), [(0, 4), (1, 4), (3, 4), (2, 9)])
def test_a_batch_waits_for_exactly_the_lag(lag, steps):
    pipeline, now = Pipeline(lag, steps), 0
    trained_on = []
    for now in range(steps):
        trained_on.append(pipeline.batch_for(now, lambda place: (place, now)))  # noqa: B023
    assert trained_on == [(place, max(0, place - lag)) for place in range(steps)]
    assert not pipeline.waiting  # nothing was sampled in vain


def test_a_stale_batch_was_sampled_by_an_earlier_policy(warm, task, recipe):
    seen, fresh = Seen(), Seen()
    settings = {"algorithm": "dapo", "resample": 0, "steps": 4, "eval_problems": 0, "lr": 5e-3}
    options = {"policy": warm, "task": task, "reward": likes_sevens}
    stale = quiet(recipe(**settings, sampler_staleness=1), loss=seen, **options)
    quiet(recipe(**settings), loss=fresh, **options)
    assert max(fresh.gaps()) < 1e-5
    assert seen.gaps()[0] < 1e-5 and min(seen.gaps()[1:]) > 1e-3
    # Its distance is in the metrics, although each batch is used once.
    assert stale.metrics[0]["kl_old"] < 1e-7 < 1e-6 < stale.metrics[-1]["kl_old"]


def test_recomputed_old_logprobs_are_exactly_the_updates_own(warm, task, recipe):
    seen = Seen()
    settings = recipe(steps=3, sampler_staleness=1, old_logprobs="recomputed", eval_problems=0)
    quiet(settings, policy=warm, task=task, reward=likes_sevens, loss=seen)
    assert seen.gaps() == [0.0] * 3
    several = Seen()
    settings = settings.but(num_iterations=2, lr=5e-3, warmup=0)
    quiet(settings, policy=warm, task=task, reward=likes_sevens, loss=several)
    first, second = several.gaps()[::2], several.gaps()[1::2]
    assert max(first) < 1e-5 and min(second) > 1e-3  # the first of each pair: rounding


@pytest.mark.parametrize("mode", ["truncate", "mask"])
def test_truncate_weighs_each_token_by_trainer_over_sampler(mode, warm, task, recipe):
    seen, asked = Seen(), []

    def truncated_weights(trainer_logprobs, sampler_logprobs, mask, cap, mode):
        weighed = algorithms.truncated_weights(trainer_logprobs, sampler_logprobs, mask, cap, mode)
        asked.append((weighed, mode, cap))
        return weighed

    truncate = {"mode": mode, "cap": 1.01}
    settings = {"steps": 3, "sampler_staleness": 2, "truncate": truncate, "lr": 5e-3}
    options = {"policy": warm, "task": task, "reward": likes_sevens, "loss": seen}
    settings = recipe(**settings, eval_problems=0)
    run = quiet(settings, functions=[truncated_weights], **options)
    assert [(m, cap) for _, m, cap in asked] == [(mode, 1.01)] * 3
    for (weighed, _, _), (_, _, advantages, mask) in zip(asked, seen.calls, strict=True):
        kept = (weighed > 0) & mask.bool()
        rows = algorithms.masked_mean(advantages / weighed.where(kept, 1), kept, dim=1)
        again = rows[:, None] * weighed
        assert kept.any() and (mode == "mask" or (kept == mask.bool()).all())
        torch.testing.assert_close(advantages[kept], again[kept], atol=1e-5, rtol=1e-5)
        assert (advantages[weighed == 0] == 0).all()
    capped = [m["sampler_weight/capped"] for m in run.metrics]
    assert capped[0] == 0 and capped[-1] > 0
    assert run.metrics[0]["sampler_weight/mean"] == pytest.approx(1, abs=1e-4)


def test_a_loss_may_read_all_three_policies_itself(warm, task, recipe):
    settings = recipe(steps=2, sampler_staleness=1, num_iterations=2, eval_problems=0, lr=5e-3)
    options = {"policy": warm, "task": task, "reward": likes_sevens}
    gaps = []

    def decoupled_loss(logprobs, old_logprobs, sampler_logprobs, advantages, mask, clip, cap):
        gaps.append(float((old_logprobs - sampler_logprobs).abs().max()))
        return algorithms.decoupled_loss(
            logprobs, old_logprobs, sampler_logprobs, advantages, mask, clip, cap
        )

    quiet(settings, loss=decoupled_loss, **options)
    assert max(gaps[:2]) < 1e-5 and min(gaps[2:]) > 1e-3
    with pytest.raises(UserError, match="decoupled_loss weighs its tokens itself: remove truncate"):
        quiet(settings.but(truncate={"cap": 2}), loss=decoupled_loss, **options)


def test_a_renewed_reference_is_where_the_policy_was(warm, task, recipe):
    settings = recipe(steps=7, reference_every=3, beta=0.1, eval_problems=0, lr=5e-3)
    run = quiet(settings, policy=warm, task=task, reward=likes_sevens)
    near = [m["kl"] < 1e-7 for m in run.metrics]
    assert near == [True, False, False, True, False, False, True]


def test_the_filter_leaves_out_what_was_cut_off(warm, task, recipe):
    settings = recipe(steps=2, overlong_filter=True, max_tokens=4, eval_problems=0)
    run = quiet(settings, policy=warm, task=task, reward=likes_sevens)
    rows = settings.prompts_per_step * settings.group_size
    for metrics in run.metrics:
        assert metrics["kept"] == round(rows * (1 - metrics["completions/clipped_ratio"]))


def test_without_shuffling_questions_come_as_they_stand(policy, task, recipe):
    asked = []

    def reward(questions):
        asked.extend(questions[::2])
        return torch.zeros(len(questions))

    settings = recipe(steps=3, prompts_per_step=4, group_size=2, shuffle=False, eval_problems=0)
    quiet(settings, policy=policy, task=task, reward=reward)
    assert asked == [str(n % 10) for n in range(12)]


@pytest.mark.parametrize(
    ("name", "changes", "sentence"),
    [
        ("sft", {"sampler_staleness": 1}, "sft has no setting sampler_staleness"),
        ("gspo", {"truncate": {"cap": 2}}, "gspo has no setting truncate"),
        ("grpo", {"sampler_staleness": 100}, "must be less than steps, 100, not 100"),
        ("grpo", {"sampler_staleness": -1}, "must be at least 0, not -1"),
        ("grpo", {"reference_every": 4}, "set beta greater than 0"),
        ("grpo", {"reference_every": 4, "beta": 1, "lora": {"rank": 1}}, "remove one of the two"),
        ("grpo", {"truncate": {"cap": 0.5}}, "truncate.cap must be at least 1"),
        ("grpo", {"truncate": {"mode": "musk"}}, "cannot be 'musk': did you mean 'mask'?"),
        ("grpo", {"truncate": {"capp": 1}}, "truncate has no key 'capp': did you mean 'cap'?"),
        ("grpo", {"old_logprobs": "none"}, "old_logprobs cannot be 'none': choose from sampled"),
        ("grpo", {"format": "strict"}, "format cannot be 'strict': choose from gradual, all_or"),
        ("cispo", {"cap": 0}, "cap must be greater than 0"),
        ("dpo", {"beta": 0}, "dpo needs a beta greater than 0"),
        (
            "grpo",
            {"lora": {"rank": 4}, "dtype": "bfloat16", "eval_dtype": "float32"},
            "with lora the weights are in bfloat16",
        ),
        ("grpo", {"eval_top_p": 2}, "eval_top_p must be at most 1.0"),
    ],
)
def test_contradictions_are_refused_in_a_sentence(name, changes, sentence):
    with pytest.raises(UserError) as error:
        load_recipe(name, **changes)
    assert sentence in str(error.value) and "\n" not in str(error.value)
