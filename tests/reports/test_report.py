"""The report: complete, self-contained, and safe to open whatever a model wrote."""

import re
from dataclasses import replace
from itertools import pairwise

import pytest

from rlcourse.reports.charts import curve, pass_at_k_chart
from rlcourse.training import render_report, train


@pytest.fixture
def finished(policy, task, recipe):
    lesson = recipe("sft", steps=30, prompts=10, lr=1e-2, eval_every=10)
    return train(lesson, policy=policy, task=task, progress=False)


def test_the_report_needs_nothing_else(finished):
    html = render_report(finished)
    assert not re.search(r"""(?:src|href|url)\s*[=(]|@import|<script""", html)
    assert html.count("<svg") == 5  # pass@k, held-out accuracy, loss, gradient norm, speed
    assert "prefers-color-scheme: dark" in html


def test_the_report_shows_accuracy_intervals_settings_and_machine(finished):
    html = render_report(finished)
    after = finished.after.accuracy
    assert f"{100 * after.value:.1f}" in html
    assert f"[{100 * after.low:.1f}, {100 * after.high:.1f}]" in html
    for name in (*finished.recipe.to_dict(), "torch", "processor"):
        assert f"<td>{name}</td>" in html
    right = sum(t.correct for t in finished.before.transcripts + finished.after.transcripts)
    assert html.count("✓ right") == right
    assert html.count("✗ wrong") == 20 - right


def test_what_a_model_writes_is_shown_not_run(finished):
    hostile = "<script>alert(1)</script><img src=x onerror=alert(1)>"
    transcripts = [
        replace(t, question=hostile, greedy=replace(t.greedy, text=hostile))
        for t in finished.after.transcripts
    ]
    finished.after = replace(finished.after, transcripts=transcripts)
    finished.recipe = finished.recipe.but(system=hostile)
    html = render_report(finished)
    assert "<script" not in html and "<img" not in html
    assert html.count("&lt;script&gt;alert(1)") >= 10


def test_a_run_without_evaluation_has_a_report_too(policy, task, recipe):
    run = train(recipe("grpo", eval_problems=0), policy=policy, task=task, progress=False)
    html = render_report(run)
    assert "Before and after" not in html and "Reward" in html


def points(svg, kind):
    found = re.search(rf'<polyline class="line {kind}" points="([^"]*)"', svg).group(1)
    return [tuple(map(float, pair.split(","))) for pair in found.split()]


def test_a_curve_rises_where_the_values_rise_and_stays_in_its_frame():
    svg = curve([(step, step**2) for step in range(1, 50)])
    drawn = points(svg, "raw")
    assert len(drawn) == 49
    assert all(a[0] < b[0] and a[1] > b[1] for a, b in pairwise(drawn))
    assert all(0 <= x <= 380 and 0 <= y <= 210 for x, y in drawn)


@pytest.mark.parametrize(
    "values",
    [[0.0], [3.0, 3.0, 3.0], [1e-9, 2e-9], [-5.0, 1e6], [float("nan"), 1.0, 2.0], [0.0] * 5],
)
def test_any_values_can_be_drawn(values):
    svg = curve(list(enumerate(values, start=1)))
    assert svg.startswith("<svg") and "nan" not in svg and "inf" not in svg


def test_long_runs_are_averaged_down():
    svg = curve([(step, step % 2) for step in range(1, 5001)])
    drawn = points(svg, "raw")
    assert len(drawn) <= 300
    assert len({y for _, y in drawn[:-1]}) <= 2  # 16 or 17 alternating values average to a half


def test_without_a_before_only_the_after_is_drawn(finished):
    both, one = (
        pass_at_k_chart(finished.before, finished.after),
        pass_at_k_chart(None, finished.after),
    )
    assert "line before" in both and "line before" not in one
    assert one.count("<polygon") == 1
