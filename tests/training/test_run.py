"""A run directory: what is in it, and that nothing in an existing one is overwritten."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
import torch
import yaml
from echo import echo_policy

from rlcourse import training
from rlcourse.errors import UserError
from rlcourse.files import TEMPORARY
from rlcourse.policy import Policy
from rlcourse.training import load_run, run, train
from rlcourse.training.measuring.metrics import read_metrics


@pytest.fixture
def finished(tmp_path, policy, task, recipe):
    out = tmp_path / "run"
    return train(recipe("sft", eval_every=2), out, policy=policy, task=task, progress=False)


def test_a_finished_run_holds_everything(finished):
    out = finished.directory
    names = {path.name for path in out.iterdir() if not path.name.startswith(TEMPORARY)}
    expected = "recipe.yaml metrics.jsonl result.json report.html checkpoints policy tensorboard "
    expected += "evaluation_before.json evaluation_after.json"
    assert names == {*expected.split()}
    assert yaml.safe_load((out / "recipe.yaml").read_text())["algorithm"] == "sft"
    metrics = read_metrics(out / "metrics.jsonl")
    assert metrics == finished.metrics and [m["step"] for m in metrics] == [1, 2, 3, 4]
    assert ["eval/accuracy" in m for m in metrics] == [False, True, False, True]
    result = json.loads((out / "result.json").read_text())
    accuracy = result["after"]["accuracy"]
    assert accuracy["low"] <= accuracy["value"] <= accuracy["high"]
    assert result["tokens"]["training"] == sum(m["tokens"] for m in metrics)
    assert result["seconds"]["training"] > 0 and result["hardware"]["cores"] >= 1
    assert result["versions"]["torch"] == torch.__version__


def test_a_model_that_takes_hours_is_kept_where_nobody_said_where(
    tmp_path, policy, task, recipe, monkeypatch, capsys
):
    """A small one is not: a lesson trains dozens."""
    monkeypatch.chdir(tmp_path)
    small = train(recipe("sft"), policy=policy, task=task, progress=False)
    assert small.directory is None and list(tmp_path.iterdir()) == []
    monkeypatch.setattr(run, "is_small", lambda model: False)
    places = [
        train(recipe("sft"), policy=policy, task=task, progress=False).directory for _ in range(2)
    ]
    assert places == [Path("runs/sft-001"), Path("runs/sft-002")]
    assert (places[0] / "result.json").exists()
    assert "this run is kept in runs/sft-001;" in capsys.readouterr().err


HOLDER = """
import sys
from rlcourse.files import in_use
with in_use(__import__("pathlib").Path(sys.argv[1])):
    print("held", flush=True)
    sys.stdin.read()
"""


def test_a_run_that_another_process_goes_on_with_is_left_alone(tmp_path, policy, task, recipe):
    out = tmp_path / "run"
    out.mkdir()
    command = [sys.executable, "-c", HOLDER, str(out)]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    with subprocess.Popen(command, **pipes, text=True) as other:
        assert other.stdout.readline() == "held\n"
        with pytest.raises(UserError, match="is in use by another process"):
            train(recipe(), out, policy=policy, task=task, progress=False)
        other.kill()  # the lock goes with it
    resumed = train(recipe(), out, policy=policy, task=task, progress=False, resume=True)
    assert len(resumed.metrics) == 4


def test_tensorboard_gets_every_metric_of_every_step(finished):
    events = pytest.importorskip("tensorboard.backend.event_processing.event_accumulator")
    log = events.EventAccumulator(str(finished.directory / "tensorboard"))
    log.Reload()
    assert {"loss", "grad_norm", "lr", "eval/accuracy"} <= set(log.Tags()["scalars"])
    assert [e.step for e in log.Scalars("loss")] == [1, 2, 3, 4]
    assert [e.value for e in log.Scalars("loss")] == pytest.approx(
        [m["loss"] for m in finished.metrics]
    )


def test_a_finished_run_can_be_loaded(finished):
    loaded = load_run(finished.directory, device="cpu")
    assert loaded.recipe == finished.recipe
    assert loaded.before == finished.before and loaded.after == finished.after
    assert loaded.summary() == finished.summary()
    for a, b in zip(loaded.policy.parameters(), finished.policy.parameters(), strict=True):
        assert torch.equal(a, b)
    with pytest.raises(UserError, match="holds no finished run"):
        load_run(finished.directory / "checkpoints")


def test_nothing_is_overwritten(finished, policy, task):
    before = {p: p.read_bytes() for p in finished.directory.rglob("*") if p.is_file()}
    options = {"policy": policy, "task": task, "progress": False}
    with pytest.raises(UserError, match="already holds a finished run: add --resume"):
        train(finished.recipe, finished.directory, **options)
    with pytest.raises(UserError, match=r"started with lr=0\.003, not 0\.1"):
        train(finished.recipe.but(lr=0.1), finished.directory, resume=True, **options)
    again = train(finished.recipe, finished.directory, resume=True, **options)
    assert again.metrics == finished.metrics
    assert before == {p: p.read_bytes() for p in finished.directory.rglob("*") if p.is_file()}
    (finished.directory / "result.json").unlink()
    with pytest.raises(UserError, match="already holds a started run: add --resume"):
        train(finished.recipe, finished.directory, **options)


def test_a_directory_of_other_things_is_refused(tmp_path, policy, task, recipe):
    (tmp_path / "thesis.tex").write_text("years of work")
    with pytest.raises(UserError, match="is not empty and holds no run"):
        train(recipe(), tmp_path, policy=policy, task=task, progress=False, resume=True)
    assert [p.name for p in tmp_path.iterdir()] == ["thesis.tex"]


def test_an_out_that_is_a_file_is_refused(tmp_path, policy, task, recipe):
    (tmp_path / "file").write_text("")
    with pytest.raises(UserError, match="could not be written"):
        train(recipe(), tmp_path / "file", policy=policy, task=task, progress=False)


def test_a_warm_start_runs_first_once_and_is_a_run_of_its_own(
    tmp_path, monkeypatch, task, recipe, capsys
):
    monkeypatch.setattr(Policy, "load", classmethod(load_echo_or_directory(Policy.load)))
    lesson = recipe("sft", steps=3).to_yaml()
    (tmp_path / "lesson.yaml").write_text(lesson)
    settings = recipe(warm_start=str(tmp_path / "lesson.yaml"), policy="echo", beta=0.1)
    out = tmp_path / "run"
    whole = train(settings, out, task=task)
    told = capsys.readouterr().err
    assert told.count("as the policy reads it") == 1  # and before anything is trained
    assert told.index("as the policy reads it") < told.index("sft:")
    warm = load_run(out / "warm_start", device="cpu")
    assert len(warm.metrics) == 3 and warm.after is None
    assert warm.recipe.policy == "echo" and warm.recipe.seed == settings.seed
    base = train(recipe(beta=0.1), policy=warm.policy, task=task, progress=False)
    for a, b in zip(whole.policy.parameters(), base.policy.parameters(), strict=True):
        assert torch.equal(a, b)  # the saved warm start is the one that was trained on


def load_echo_or_directory(load):
    def loader(cls, name="tiny", device=None, dtype=None):
        return echo_policy() if name == "echo" else load(name, device=device)

    return loader


def test_progress_shows_reward_and_accuracy(policy, task, recipe, capsys):
    train(recipe(eval_every=1), policy=policy, task=task)
    shown = capsys.readouterr().err
    assert "grpo" in shown and "reward=" in shown and "accuracy=" in shown and "held-out=" in shown
    train(recipe("sft"), policy=policy, task=task, progress=False)
    assert capsys.readouterr().err == ""


def test_a_nan_names_the_last_checkpoint(tmp_path, policy, task, recipe):
    calls = []

    def bad(logprobs, mask):
        calls.append(1)
        return -logprobs.sum() / (len(calls) < 4)

    with pytest.raises(UserError, match=r"the last checkpoint is .*step-000002"):
        train(recipe("sft"), tmp_path, policy=policy, task=task, loss=bad, progress=False)
    assert len(read_metrics(tmp_path / "metrics.jsonl")) == 3
    assert not (tmp_path / "result.json").exists()


def test_everything_the_package_offers_can_be_imported():
    for name in training.__all__:
        assert getattr(training, name).__name__.removeprefix("_") == name
    with pytest.raises(AttributeError, match="no attribute 'trian'"):
        _ = training.trian
