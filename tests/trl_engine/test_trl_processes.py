"""Two real processes on the CPU, started by ``accelerate launch``: they learn what one learns."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from echo import echo_policy
from engines import assert_same_weights, recipe_of, reward_digits, write_echo

from rlcourse.training import load_run
from rlcourse.training import train as train_locally
from rlcourse.training.data.batches import problems_of_step
from rlcourse.training.run import task_of

pytest.importorskip("trl", reason="the extra `trl` is not installed")

# --multi_gpu stands for torch's launcher: with --cpu accelerate starts one process only
LAUNCH = [sys.executable, "-m", "accelerate.commands.launch", "--multi_gpu", "--num_processes", "2"]
SCRIPT = str(Path(__file__).with_name("one_of_several.py"))


@pytest.fixture
def recipe(tmp_path):
    """A step of 16 rows in two updates, written where the processes can read it."""
    recipe = recipe_of(
        write_echo(tmp_path), num_iterations=2, clip=0.02, beta=0.1, checkpoint_every=2
    )
    (tmp_path / "recipe.yaml").write_text(recipe.to_yaml(), encoding="utf-8")
    return recipe


def start(tmp_path, *command) -> subprocess.Popen:
    tests = [str(Path(SCRIPT).parent), str(Path(SCRIPT).parents[1])]
    environment = os.environ | {"OMP_NUM_THREADS": "1", "PYTHONPATH": os.pathsep.join(tests)}
    return subprocess.Popen(
        [*LAUNCH, "--main_process_port", "0", *command],
        cwd=tmp_path,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )


def prompts_of_step(recipe, step: int) -> list[list[int]]:
    """The tokens of a step's prompts, a row for each completion."""
    problems = problems_of_step(task_of(recipe).train, recipe.prompts_per_step, step, recipe.seed)
    policy = echo_policy()
    tokens, real = policy.encode_prompts([policy.format_prompt(p.question) for p in problems])
    rows = [row[kept].tolist() for row, kept in zip(tokens, real, strict=True)]
    return [row for row in rows for _ in range(recipe.group_size)]


@pytest.mark.weekly
def test_two_processes_learn_what_the_local_engine_learns(recipe, tmp_path, monkeypatch):
    """Given the same completions: half of a step's rows each, and the same weights after it."""
    process = start(tmp_path, SCRIPT, "same", "recipe.yaml", "out")
    output, _ = process.communicate(timeout=1800)
    assert process.returncode == 0, output

    reward_digits(monkeypatch)
    ours = train_locally(recipe, progress=False)
    theirs = load_run(tmp_path / "out")
    assert_same_weights(ours.policy, theirs.policy, echo_policy())
    for mine, other in zip(ours.metrics, theirs.metrics, strict=True):
        for name in ("reward/mean", "tokens", "kl", "clip_ratio", "grad_norm", "lr", "loss"):
            assert mine[name] == pytest.approx(other[name], rel=2e-3, abs=1e-6), name

    seen = [json.loads((tmp_path / f"out_seen_{rank}.json").read_text()) for rank in (0, 1)]
    assert seen[0]["weights"] == seen[1]["weights"]  # their sums, after each update, exactly
    assert len(seen[0]["weights"]) == recipe.steps * recipe.num_iterations
    for step, (first, second) in enumerate(zip(*(s["prompts"] for s in seen), strict=True)):
        assert len(first) == len(second) == recipe.prompts_per_step * recipe.group_size // 2
        assert first + second == prompts_of_step(recipe, step)  # each row once
    result = json.loads((tmp_path / "out" / "result.json").read_text())
    assert result["engine"]["processes"] == 2


@pytest.mark.weekly
def test_an_error_in_one_process_ends_both_with_its_sentence(recipe, tmp_path):
    process = start(tmp_path, SCRIPT, "fails", "recipe.yaml", "out")
    output, _ = process.communicate(timeout=1800)
    assert process.returncode == 1
    assert output.count("rlcourse (process 1): the reward of process 1 broke") == 1
    assert not (tmp_path / "out" / "result.json").exists()


@pytest.mark.weekly
def test_sigterm_leaves_a_checkpoint_of_the_last_step(recipe, tmp_path):
    train = ["-m", "rlcourse", "train", "recipe.yaml", "--engine", "trl", "--out", "out"]
    process = start(tmp_path, *train, "steps=5000", "checkpoint_every=0")
    metrics = tmp_path / "out" / "metrics.jsonl"
    for _ in range(18_000):  # half an hour
        if process.poll() is not None or (metrics.exists() and metrics.stat().st_size > 300):
            break
        time.sleep(0.1)
    process.send_signal(signal.SIGTERM)
    output, _ = process.communicate(timeout=1800)
    assert output.count("stopped by SIGTERM after step") == 1, output
    done = len(metrics.read_text().splitlines())
    assert (tmp_path / "out" / "checkpoints" / f"checkpoint-{2 * done}").is_dir()
