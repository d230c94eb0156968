"""What goes wrong in real runs ends in a sentence, early, and leaves a run to continue."""

import os
import signal
from dataclasses import replace

import pytest
import torch
import yaml
from echo import by_length, echo_policy, echo_recipe, echo_task

import rlcourse.training.measuring.evaluating as measuring
from rlcourse.errors import UserError
from rlcourse.evaluation import read_evaluation
from rlcourse.signals import Interrupted
from rlcourse.tasks import Problem, Task, extract_answer
from rlcourse.training import load_recipe, run, train

OPTIONS = {"progress": False}


def test_a_question_that_is_too_long_is_found_before_training_begins(tmp_path):
    """Its turn would come in the last step: a run must not die of it at night."""
    task = echo_task()
    long = [*task.train, Problem("1" * 60, "#### 1")]
    sampled = []
    policy = echo_policy()
    policy.sample = lambda *args, **kwargs: sampled.append(args)
    with pytest.raises(UserError, match="61 tokens and max_tokens is 8, but this"):
        recipe = echo_recipe(steps=4, eval_problems=0)
        train(recipe, policy=policy, task=Task("echo", long, task.evaluation), **OPTIONS)
    assert not sampled
    task = Task("echo", task.train, [*task.evaluation, long[-1]])
    with pytest.raises(UserError, match="this model reads at most 64"):
        train(echo_recipe(eval_problems=11), policy=echo_policy(), task=task, **OPTIONS)


@pytest.mark.parametrize("number, code", [(signal.SIGTERM, 0), (signal.SIGINT, 130)])
def test_an_evaluation_within_a_run_is_stopped_and_gone_on_with(
    tmp_path, number, code, monkeypatch
):
    evaluate, signals = measuring.evaluate_policy, []

    def two_problems_at_a_time(*args, **options):
        return evaluate(*args, **options, batch=10)

    def reading(text):
        signals.append(len(signals))
        if len(signals) == 12:  # in the second batch, before training
            os.kill(os.getpid(), number)
        return extract_answer(text)

    monkeypatch.setattr(measuring, "evaluate_policy", two_problems_at_a_time)
    task, recipe = echo_task(), echo_recipe(steps=2)
    task = replace(task, extract=reading)
    options = {"policy": echo_policy(), "task": task, "progress": False}
    out = tmp_path / "run"
    with pytest.raises(Interrupted, match="--resume") as stopped:
        train(recipe, out, **options)
    assert stopped.value.exit_code == code
    done = len((out / "evaluation_before" / "completions.jsonl").read_text().splitlines())
    assert 0 < done < 10

    resumed = train(recipe, out, resume=True, **options)
    plain = train(recipe, tmp_path / "plain", **options)
    assert not (out / "evaluation_before").exists()
    assert read_evaluation(out / "evaluation_before.json").problems == 10
    assert resumed.before.transcripts == plain.before.transcripts
    assert resumed.after.transcripts == plain.after.transcripts


def test_a_run_of_another_machine_goes_on_here(tmp_path):
    """Another device and another micro-batch: what is computed stays what the recipe says."""
    settings = {"eval_problems": 0, "checkpoint_every": 2, "beta": 0.1}
    # Without a reward the gradient would be rounding, and Adam makes full steps of that, too.
    options = OPTIONS | {"task": echo_task(), "reward": by_length}
    start = echo_policy().double()  # exact, so that no completion hangs on rounding
    plain = train(echo_recipe(**settings), policy=start, **options)
    out = tmp_path / "run"
    train(echo_recipe(**settings), out, policy=start, **options)
    (out / "result.json").unlink()
    last = sorted((out / "checkpoints").iterdir())[-1]
    last.rename(out / "gone")  # as if killed between steps 2 and 4
    recipe = yaml.safe_load((out / "recipe.yaml").read_text())
    (out / "recipe.yaml").write_text(yaml.safe_dump(recipe | {"device": "cuda:7"}))
    kept = out / "checkpoints" / "step-000002" / "state.pt"
    state = torch.load(kept, map_location="meta", weights_only=True)
    assert state["optimizer"]["param_groups"][0]["fused"]
    changed = echo_recipe(micro_batch=3, gradient_checkpointing=True, **settings)
    resumed = train(changed, out, policy=start, resume=True, **options)
    for a, b in zip(resumed.policy.parameters(), plain.policy.parameters(), strict=True):
        torch.testing.assert_close(a, b, rtol=1e-5, atol=1e-7)


@pytest.mark.parametrize("text", ["CUDA out of memory", "MPS backend out of memory"])
def test_a_sampler_without_memory_says_what_to_lower(text, monkeypatch):
    policy = echo_policy()

    def sample(*args, **kwargs):
        raise RuntimeError(text)

    monkeypatch.setattr(type(policy), "sample", sample)
    with pytest.raises(UserError, match=r"too little memory: lower prompts_per_step \(now 5\)"):
        train(echo_recipe(eval_problems=0), policy=policy, task=echo_task(), **OPTIONS)


def test_a_false_start_leaves_nothing_in_the_way_of_the_next_one(tmp_path):
    recipe = load_recipe("grpo", policy=str(tmp_path / "nowhere" / "else"), warm_start=None)
    for _ in range(2):  # the second try must hear the same, not that there is a run already
        with pytest.raises(UserError, match="There is no model directory"):
            train(recipe, tmp_path / "run", **OPTIONS)
    assert not (tmp_path / "run" / "recipe.yaml").exists()


def test_a_large_model_does_not_train_on_a_cpu_beside_an_idle_gpu(tmp_path, monkeypatch):
    weights = sum(p.numel() for p in echo_policy().parameters())
    why = "PyTorch cannot use the T4 of this machine, because its driver is too old"
    monkeypatch.setattr(run, "unusable_gpu", lambda: why)
    options = {"policy": echo_policy(), "task": echo_task(), **OPTIONS}
    recipe = echo_recipe(eval_problems=0, steps=1, device=None)
    train(recipe, **options)  # a small one does
    monkeypatch.setattr(run, "LARGE", weights)
    with pytest.raises(UserError, match=r"its driver is too old; to train .* set device=cpu"):
        train(recipe, tmp_path / "run", **options)
    assert not (tmp_path / "run" / "recipe.yaml").exists()
    train(recipe.but(device="cpu"), **options)
