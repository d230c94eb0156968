"""A run to scrub through: what it kept is shown, within a size, and safe whatever it holds."""

import json
import re
from types import SimpleNamespace

from bs4 import BeautifulSoup

from rlcourse.evaluation import Interval
from rlcourse.reports import RunRecord, render_report
from rlcourse.reports.scrubbing import run_data, scrubber

RECIPE = {"algorithm": "grpo", "task": "t", "policy": "tiny", "warm_start": None, "seed": 0}


def completion(tokens, reward=1.0, advantage=(0.5,)):
    return {"tokens": list(tokens), "reward": reward, "advantage": list(advantage)}


def record(steps=6, groups=3, tokens=("1", " + ", "2", "</s>"), every=1):
    metrics = [
        {"step": n, "tokens": 9, "reward/mean": n / 10, "entropy": float("nan") if n == 1 else 0.5}
        for n in range(1, steps + 1)
    ]
    for m in metrics[1::2]:
        m |= {"eval/accuracy": 0.25, "eval/accuracy_low": 0.2, "eval/accuracy_high": 0.3}
    one = [{"question": f"{n}?", "completions": [completion(tokens)] * 8} for n in range(groups)]
    kept = [{"step": n, "groups": one} for n in range(1, steps + 1, every)]
    return RunRecord({**RECIPE, "steps": steps}, metrics, kept_groups=kept)


def test_curves_and_moments_are_those_of_the_run():
    data = run_data(record())
    assert data["reward"] == [[n, n / 10] for n in range(1, 7)]
    assert data["accuracy"] == [[n, 0.25, 0.2, 0.3] for n in (2, 4, 6)]
    assert [moment["step"] for moment in data["moments"]] == [1, 2, 3, 4, 5, 6]
    first, second, *_ = data["moments"]
    assert first["facts"] == {"mean reward": 0.1}  # what is not a number is left out
    assert second["facts"] == {"mean reward": 0.2, "entropy, nats per token": 0.5}
    assert [group["question"] for group in first["groups"]] == ["0?", "1?", "2?"]
    assert first["groups"][0]["completions"][0] == completion(("1", " + ", "2", "</s>"))


def test_accuracy_begins_before_training_and_ends_after_it():
    run = record()
    run.before = SimpleNamespace(accuracy=Interval(0.1, 0.05, 0.2))
    run.after = SimpleNamespace(accuracy=Interval(0.9, 0.8, 0.95))
    accuracy = run_data(run)["accuracy"]
    assert accuracy[0] == [0, 0.1, 0.05, 0.2]
    assert accuracy[-1] == [6, 0.25, 0.2, 0.3]  # what was measured on the way stands
    for metrics in run.metrics:
        metrics.pop("eval/accuracy", None)
    assert run_data(run)["accuracy"] == [[0, 0.1, 0.05, 0.2], [6, 0.9, 0.8, 0.95]]


def test_long_runs_are_cut_to_size_and_say_so():
    long = record(steps=24, tokens=["word "] * 3000)
    data = run_data(long)
    assert len(json.dumps(data)) < 300_000
    assert data["moments"][-1]["step"] == 24
    cut = data["moments"][0]["groups"][0]["completions"][0]
    assert len(cut["tokens"]) + cut["more"] == 3000
    moderate = run_data(record(steps=24, tokens=["word "] * 60))
    assert [m["step"] for m in moderate["moments"]] == list(range(1, 25))
    assert "more" not in moderate["moments"][0]["groups"][0]["completions"][0]


def test_no_text_of_a_model_becomes_markup():
    evil = "</script><img src=x onerror=alert(1)><!--"
    run = record(tokens=[evil])
    for group in run.kept_groups[0]["groups"]:
        group["question"] = evil
    page = BeautifulSoup(scrubber(run), "html.parser")
    assert not page.find("img")
    (data,) = page.find_all("script", type="application/json")
    shown = json.loads(data.string)["moments"][0]["groups"][0]
    assert shown["question"] == evil and shown["completions"][0]["tokens"] == [evil]
    script = page.find_all("script")[-1].string
    assert re.findall(r"innerHTML = (\w+)", script) == ["curves"]  # of numbers alone


def test_without_a_script_it_is_a_table_of_the_steps():
    page = BeautifulSoup(scrubber(record()), "html.parser")
    rows = [[td.text for td in tr.find_all("td")] for tr in page.select(".plain tbody tr")]
    assert rows[0] == ["1", "0.1", "", ""] and rows[1] == ["2", "0.2", "0.5", "0.25"]
    heads = [th.text for th in page.select(".plain th")]
    assert heads == ["step", "mean reward", "entropy, nats per token", "held-out accuracy"]


def test_only_a_report_of_a_run_that_kept_groups_has_it():
    run = record()
    html = render_report(run)
    assert "Step by step" in html and 'class="rl-scrub"' in html
    assert not re.search(r"(?:src|href)=|@import|url\(|https?:", html)
    run.kept_groups = []
    assert scrubber(run) == "" and "<script" not in render_report(run)
    run.metrics = []
    render_report(run)
