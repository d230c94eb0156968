"""The page that compares runs says what differs, and draws what can be compared."""

import copy
import re
from dataclasses import replace

import pytest

from rlcourse.errors import UserError
from rlcourse.evaluation import Evaluation
from rlcourse.evaluation.scores import Completion, Transcript
from rlcourse.reports import RunRecord, render_comparison
from rlcourse.reports.comparison import as_series, differing_settings, gains, warnings

RECIPE = {
    **{"algorithm": "grpo", "policy": "tiny", "task": "echo", "seed": 0, "steps": 4, "lr": 0.1},
    **{"rewards": {"correctness": 1.0, "format": 0.0}, "system": None},
}


def evaluation(solved, problems=10):
    """An evaluation in which the first `solved` problems are answered right."""

    def answer(n, text):
        right = n < solved
        return Completion(text, "7" if right else "8", right, None, False, 3, False)

    made = [
        Transcript(f"question {n}", "#### 7", answer(n, "#### 7"), (answer(n, "sample"),) * 4)
        for n in range(problems)
    ]
    return Evaluation.of(made, temperature=1.0, seconds=1.0)


def run(tmp_path, name, solved=5, steps=4, **changes):
    """A record of a run whose metrics can be foreseen."""
    metrics = [
        {
            **{"step": step, "tokens": 100 * step, "seconds": 2.0, "completions/mean_length": 10},
            **{"reward/mean": changes.get("seed", 0) + step, "loss": 0.5},
        }
        for step in range(1, steps + 1)
    ]
    recipe = copy.deepcopy(RECIPE) | changes
    result = {"hardware": {"device": "cpu"}}
    return RunRecord(
        *(recipe, metrics, evaluation(1), evaluation(solved)),
        result=result,
        directory=tmp_path / name,
    )


def test_only_differing_settings_stand_in_the_table(tmp_path):
    two = [
        run(tmp_path, "a"),
        run(tmp_path, "b", lr=0.2, rewards={"correctness": 1.0, "format": 0.5}),
    ]
    assert differing_settings(as_series(two)) == {
        "lr": ["0.1", "0.2"],
        "rewards.format": ["0.0", "0.5"],
    }
    older = run(tmp_path, "c")
    del older.recipe["lr"]
    assert differing_settings(as_series([two[0], older])) == {"lr": ["0.1", "–"]}


def test_runs_of_one_recipe_and_several_seeds_share_a_letter(tmp_path):
    runs = [run(tmp_path, f"grpo-seed{n}", seed=n) for n in range(3)] + [run(tmp_path, "x", lr=1.0)]
    first, second = as_series([runs[0], runs[3], runs[1], runs[2]])
    assert (first.letter, first.name) == ("A", "grpo, 3 seeds")
    assert (second.letter, second.name, second.style) == ("B", "x", "s1")
    assert differing_settings([first, second])["seed"] == ["0, 1, 2", "0"]


def test_seeds_are_drawn_as_their_mean_with_their_range_as_band(tmp_path):
    (series,) = as_series([run(tmp_path, f"s{n}", seed=10 * n) for n in range(3)])
    line = series.line("reward/mean", "plain")
    assert line.points == [(step, 10 + step) for step in (1, 2, 3, 4)]
    assert line.band == [(step, step, 20 + step) for step in (1, 2, 3, 4)]


def test_runs_measured_on_other_problems_are_not_compared_in_silence(tmp_path):
    one, other = run(tmp_path, "a"), run(tmp_path, "b", lr=0.2)
    assert warnings([one, other]) == []
    other.after = evaluation(5, problems=9)
    (sentence,) = warnings([one, other])
    assert "not measured on the same problems" in sentence
    assert sentence in render_comparison([one, other])
    other.after = replace(evaluation(5), temperature=0.5)
    assert "only greedy accuracy" in warnings([one, other])[0]


def test_every_accuracy_after_stands_in_one_picture_with_its_interval(tmp_path):
    two = [run(tmp_path, "a", solved=3), run(tmp_path, "b", solved=8, lr=0.2)]
    html = render_comparison(two)
    for record in two:
        interval = record.after.accuracy
        assert f"[{100 * interval.low:.1f}, {100 * interval.high:.1f}]" in html
        assert f'<b style="left: {100 * interval.value:.1f}%">' in html
    assert html.count('<u style="left: 10.0%">') >= 2  # where they began


def test_differences_are_taken_problem_by_problem_and_judged(tmp_path):
    runs = [
        run(tmp_path, "a", solved=1),
        run(tmp_path, "b", 9, lr=0.2),
        run(tmp_path, "c", 2, lr=3),
    ]
    ((_, b, far), (_, c, near)) = gains(as_series(runs))["rows"]
    assert (b, c) == ("b", "c")
    assert far["Greedy accuracy"].difference.value == pytest.approx(0.8)
    assert far["Greedy accuracy"].told_apart and not near["Greedy accuracy"].told_apart
    html = render_comparison(runs)
    table = re.search(r"Differences from .*?</table>", html, re.DOTALL).group()
    assert table.count("<strong>") == 2  # b alone: greedily and sampled
    assert "+80.0" in table and "+10.0" in table
    runs[1].after = evaluation(9, problems=9)
    assert [name for _, name, _ in gains(as_series(runs))["rows"]] == ["c"]


def test_twelve_recipes_can_be_told_apart_and_thirteen_are_refused(tmp_path):
    runs = [run(tmp_path, f"r{n}", lr=n) for n in range(13)]
    html = render_comparison(runs[:12])
    styles = set(re.findall(r'class="badge (s\d+)"', html))
    assert len(styles) == 12
    with pytest.raises(UserError, match="13 different recipes"):
        render_comparison(runs)
    with pytest.raises(UserError, match="at least two"):
        render_comparison(runs[:1])


def test_runs_without_evaluation_or_steps_can_be_compared(tmp_path):
    bare = [run(tmp_path, "a", steps=0), run(tmp_path, "b", lr=0.2, steps=1)]
    for record in bare:
        record.before = record.after = None
        record.result = {}
    html = render_comparison(bare)
    assert "it is at step 0 of 4" in html and "it is at step 1 of 4" in html
    assert "None of these runs" in html
    bare[1].after = evaluation(3)
    assert "not measured" in render_comparison(bare)


def test_the_comparison_needs_nothing_else_and_escapes_everything(tmp_path):
    hostile = "<script>alert(1)</script><img src=x>"
    two = [run(tmp_path, "a", system=hostile), run(tmp_path, hostile.replace("/", "|"))]
    two[0].after = replace(
        two[0].after,
        transcripts=[
            replace(t, question=f"{hostile}{n}", greedy=replace(t.greedy, text=hostile))
            for n, t in enumerate(two[0].after.transcripts)
        ],
    )
    two[1].after = two[0].after
    for record in two:
        for metrics in record.metrics:
            metrics[hostile] = 1.0
        record.result = {"hardware": {"device": hostile, "peak_gpu_memory": hostile}}
    html = render_comparison(two)
    assert "<script" not in html and "<img" not in html
    assert not re.search(r"""(?:src|href|url)\s*[=(]|@import""", html.replace("img src=x", ""))
