"""The report of one run: complete, self-contained, and safe to open whatever a model wrote."""

import re
from dataclasses import replace

import pytest

from rlcourse.reports import read_run, render_report
from rlcourse.training import train


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    """A run of 30 steps in a directory, with held-out accuracy on the way."""
    from echo import echo_policy, echo_recipe, echo_task

    lesson = echo_recipe("sft", steps=30, prompts_per_step=10, lr=1e-2, eval_every=10)
    out = tmp_path_factory.mktemp("runs") / "echo"
    return train(lesson, out, policy=echo_policy(), task=echo_task(), progress=False)


@pytest.fixture
def record(trained):
    return read_run(trained.directory)


def chart(html, title):
    """The card of the chart with that title."""
    return re.search(rf"<h3>{re.escape(title)}</h3>.*?</section>", html, re.DOTALL).group()


def test_the_report_needs_nothing_else(record):
    html = render_report(record)
    assert not re.search(r"""(?:src|href|url)\s*[=(]|@import|<script""", html)
    assert "prefers-color-scheme: dark" in html and "@media print" in html


def test_the_trainer_writes_the_page_that_is_read_back_later(trained, record):
    def without_date(html):
        return re.sub(r"Made [-0-9: ]+ by", "", html)

    written = (trained.directory / "report.html").read_text(encoding="utf-8")
    assert without_date(written) == without_date(render_report(record))


def test_held_out_accuracy_starts_before_training_and_has_its_interval(record):
    drawn = chart(render_report(record), "Held-out accuracy")
    assert drawn.count("<circle") == 4  # steps 0, 10, 20, 30
    (band,) = re.findall(r'<polygon class="band[^"]*" points="([^"]*)"', drawn)
    assert len(band.split()) == 8
    for metrics in record.metrics:
        metrics.pop("eval/accuracy_low", None)
    record.before = None
    assert "<polygon" not in chart(render_report(record), "Held-out accuracy")


def test_every_accuracy_stands_there_before_and_after_with_its_interval(record):
    html = render_report(record)
    for evaluation in (record.before, record.after):
        for interval in (
            *(evaluation.accuracy, evaluation.sampled_accuracy),
            *(evaluation.pass_at[4], evaluation.majority_at[4]),
        ):
            assert f"{100 * interval.value:.1f}" in html
            assert f"[{100 * interval.low:.1f}, {100 * interval.high:.1f}]" in html
        assert f"{100 * evaluation.sampled_lenient_accuracy.value:.1f} %" in html
    right = sum(t.correct for t in record.before.transcripts + record.after.transcripts)
    assert html.count("✓</span> right") == right
    assert html.count("✗</span> wrong") == 20 - right


def test_what_a_model_writes_is_shown_not_run(record):
    hostile = "<script>alert(1)</script><img src=x onerror=alert(1)> #### <b>7</b>"

    def poisoned(transcript):
        bad = replace(transcript.greedy, text=hostile, given="7")
        return replace(transcript, question=hostile, answer=hostile, greedy=bad, samples=(bad,) * 4)

    record.after = replace(record.after, transcripts=[*map(poisoned, record.after.transcripts)])
    record.before = None
    record.recipe |= {"system": hostile, "policy": hostile, "rewards": {hostile: hostile}}
    record.result["hardware"] = {"processor": hostile}
    for metrics in record.metrics:
        metrics[f"rewards/{hostile}/mean"] = 1.0
        metrics[f"unheard/{hostile}"] = 1.0
    html = render_report(record)
    assert "<script" not in html and "<img" not in html and "<b>7" not in html
    assert html.count("&lt;script&gt;alert(1)") >= 8


def test_a_run_without_evaluation_has_a_report_too(policy, task, recipe):
    run = train(recipe("grpo", eval_problems=0), policy=policy, task=task, progress=False)
    html = render_report(run.record())
    assert "Before and after" not in html and "Transcripts" not in html
    assert "Reward" in html and "not finished" not in html


def test_an_unfinished_run_shows_what_there_is_and_says_so(record, tmp_path):
    for name in ("recipe.yaml", "evaluation_before.json"):
        (tmp_path / name).write_bytes((record.directory / name).read_bytes())
    html = render_report(read_run(tmp_path))  # before its first step
    assert "it is at step 0 of 30" in html and "no curves" in html
    assert html.count("reference answer") == 10  # what it wrote before training
    lines = (record.directory / "metrics.jsonl").read_text().splitlines(keepends=True)
    (tmp_path / "metrics.jsonl").write_text("".join(lines[:12]) + lines[12][:20])
    html = render_report(read_run(tmp_path))
    assert "it is at step 12 of 30" in html
    assert "Loss" in html and "Recorded when the run finishes" in html
    (tmp_path / "metrics.jsonl").write_text("".join(lines))
    assert "its steps are done" in render_report(read_run(tmp_path))
    assert "not finished" not in render_report(record)


def test_values_that_are_not_numbers_are_counted_not_drawn(record):
    record.metrics[3]["loss"] = float("nan")
    record.metrics[4]["loss"] = float("inf")
    record.metrics[5]["loss"] = None
    drawn = chart(render_report(record), "Loss")
    assert "3 of the values are not finite numbers" in drawn
    for metrics in record.metrics:
        metrics["loss"] = float("nan")
    drawn = chart(render_report(record), "Loss")
    assert "<svg" not in drawn and "30 of the values" in drawn
