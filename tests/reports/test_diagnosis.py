"""What ``rlcourse report`` says of real runs: those recorded for lesson 10."""

import json

import pytest
from typer.testing import CliRunner

from rlcourse.cli import app
from rlcourse.courses import shipped
from rlcourse.reports import RunRecord
from rlcourse.reports.diagnosis import diagnosis
from rlcourse.tasks.recorded import SHOWN
from rlcourse.training import load_recipe

HIDDEN = shipped().lesson("10").directory / "hidden_runs.json"
RUNS = [run for path in (SHOWN, HIDDEN) for run in json.loads(path.read_text("utf-8"))]
# A word of the sentence that names the cause.
SAYS = {
    "healthy": "✓ It looks healthy",
    "padding_counted": "padding is counted",
    "masked_eos": "the EOS is masked out",
    "all_truncated": "are cut off",
    "wrong_grouping": "compared with those of other questions",
    "missing_temperature": "Look for the temperature, 1.3",
    "dropout": "Look for dropout while scoring",
    "stale_sampler": "does not get the weights that are learned",
    "ratio_one": "the loss sees a ratio of 1",
    "bfloat16_weights": "updates are rounded away",
    "kl_sign": "Look at the penalty's sign",
    "unreadable_gold": "from the first step on",
    "empty_answer": "pays for something else",
}


def record_of(run: dict, without=()) -> RunRecord:
    steps = len(run["metrics"]["reward/mean"])
    metrics = [
        {"step": i + 1}
        | {
            name: values[i]
            for name, values in run["metrics"].items()
            if values[i] is not None and name not in without
        }
        for i in range(steps)
    ]
    recipe = run["settings"] | {"algorithm": "grpo", "steps": steps, "dtype": "float32"}
    return RunRecord(recipe | {"minibatches": 1, "rewards": {"correctness": 1.0}}, metrics)


@pytest.mark.parametrize("run", RUNS, ids=lambda run: f"{run['cause']}-{run['seed']}")
def test_every_recorded_run_is_read_for_what_it_is(run):
    text = diagnosis(record_of(run))
    assert SAYS[run["cause"]] in text
    assert text.count("✗ ") == (run["cause"] != "healthy")
    assert ("Excluded: padding counted, masked eos" in text) == (run["cause"] == "healthy")
    assert "Not recorded" not in text


def test_of_a_run_without_the_newer_metrics_it_says_what_is_missing():
    newer = ("gap/mean", "loss_tokens", "weights_changed", "clip_ratio/low", "clip_ratio/high")
    run = next(run for run in RUNS if run["cause"] == "healthy")
    text = diagnosis(record_of(run, without=newer))
    assert "every signal that was recorded is in its range" in text
    assert "Not recorded: loss_tokens, weights_changed, gap/mean" in text
    assert "may have padding counted or masked eos or missing temperature" in text


def test_there_is_nothing_to_diagnose_in_imitation():
    recipe = {"algorithm": "sft", "steps": 2}
    steps = [{"step": 1, "loss": 1.0}, {"step": 2, "loss": 0.9}]
    assert "samples nothing" in diagnosis(RunRecord(recipe, steps))
    assert "no step yet" in diagnosis(RunRecord(recipe, []))


def test_the_command_prints_it_with_the_report(tmp_path):
    run = next(run for run in RUNS if run["cause"] == "stale_sampler")
    record = record_of(run)
    (tmp_path / "recipe.yaml").write_text(json.dumps(load_recipe("grpo").to_dict() | record.recipe))
    lines = "".join(json.dumps(step) + "\n" for step in record.metrics)
    (tmp_path / "metrics.jsonl").write_text(lines)
    done = CliRunner().invoke(app, ["report", str(tmp_path)])
    assert done.exit_code == 0 and SAYS["stale_sampler"] in done.stdout
    assert done.stdout.endswith(f"{tmp_path / 'report.html'}\n")
