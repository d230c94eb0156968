"""A page that renews itself while a run trains, and stops doing so when the run ends."""

import json
import shutil
from pathlib import Path

import pytest
from echo import echo_policy, echo_recipe, echo_task
from typer.testing import CliRunner

from rlcourse.cli import app
from rlcourse.errors import UserError
from rlcourse.reports import follow_report, read_run, write_report
from rlcourse.training import train

RENEWS = '<meta http-equiv="refresh" content="7">'


@pytest.fixture
def training(tmp_path):
    """A run of 4 steps of which the last two are still to come, and what it writes at its end."""
    out = tmp_path / "run"
    recipe = echo_recipe("sft", steps=4, prompts_per_step=4)
    train(recipe, out, policy=echo_policy(), task=echo_task(), progress=False)
    (out / "report.html").unlink()
    shutil.move(out / "result.json", tmp_path / "result.json")
    lines = (out / "metrics.jsonl").read_text().splitlines(keepends=True)
    (out / "metrics.jsonl").write_text("".join(lines[:2]))
    return out, lines[2:]


def test_each_page_shows_what_there_is_and_the_last_one_stays(training):
    out, to_come = training
    pages = []

    def step_done(seconds):
        assert seconds == 7
        pages.append((out / "report.html").read_text())
        with (out / "metrics.jsonl").open("a") as file:
            file.write(to_come.pop(0))
        if not to_come:
            shutil.move(out.parent / "result.json", out / "result.json")

    path = follow_report(out, seconds=7, sleep=step_done)
    assert path == out / "report.html" and RENEWS not in path.read_text()
    assert "not finished" not in path.read_text()
    assert all(RENEWS in page and "and renews itself" in page for page in pages)
    assert "at step 2 of 4, and the rest takes about 1 min." in pages[0]
    assert "at step 3 of 4" in pages[1] and len(pages) == 2


def test_a_projector_sees_what_changes_first(training):
    """How it does by now against the start, and the curves: above all that was measured before."""
    out, _ = training
    first, last = map(json.loads, (out / "metrics.jsonl").read_text().splitlines())
    last |= {"eval/accuracy": 0.5, "eval/accuracy_low": 0.4, "eval/accuracy_high": 0.6}
    (out / "metrics.jsonl").write_text(f"{json.dumps(first)}\n{json.dumps(last)}\n")
    before = read_run(out).before.accuracy
    page = write_report([out]).read_text()
    assert (
        f"Held-out accuracy after step 2: 0.500 [0.400, 0.600], before training {before}." in page
    )
    assert page.count("<h2>Did it learn?</h2>") == 1
    assert page.index("<h2>Did it learn?</h2>") < page.index("<h3>Greedy accuracy</h3>")
    shutil.move(out.parent / "result.json", out / "result.json")
    page = write_report([out]).read_text()
    assert "Held-out accuracy after step" not in page
    assert page.count("<h2>Did it learn?</h2>") == 1
    assert page.index("<h2>Did it learn?</h2>") > page.index("<h3>Greedy accuracy</h3>")


def test_stopped_by_a_person_it_leaves_a_page_that_stays(training):
    def stopped(seconds):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        follow_report(training[0], seconds=7, sleep=stopped)
    page = (training[0] / "report.html").read_text()
    assert RENEWS not in page and "at step 2 of 4" in page


def test_what_cannot_be_followed_is_refused(training, tmp_path):
    with pytest.raises(UserError, match="holds no run"):
        follow_report(tmp_path / "none")
    run = str(training[0])
    refused = CliRunner().invoke(app, ["report", run, run, "--follow"])
    assert isinstance(refused.exception, UserError)
    assert "--follow takes one run, not 2" in str(refused.exception)
    assert not Path("comparison.html").exists()
