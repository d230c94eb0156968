"""Several runs on one page: what differs, what each reached and cost, and their curves together."""

import math
from collections.abc import Callable, Iterator, Sequence
from datetime import datetime
from itertools import chain
from statistics import fmean

from markupsafe import Markup

from rlcourse.errors import UserError
from rlcourse.evaluation import Interval
from rlcourse.reports.catalog import Chart, sections
from rlcourse.reports.charts import plot
from rlcourse.reports.pages import duration, flat, render, written
from rlcourse.reports.record import RunRecord
from rlcourse.reports.report import (
    SAMPLES,
    completions_of,
    headline,
    paired,
    pass_at_k_chart,
    problems_of,
    settled_note,
    transcripts,
)
from rlcourse.reports.series import AXES, Series, as_series, spread

COLUMNS = 4  # of transcripts side by side
ABSENT = "–"


def render_comparison(records: Sequence[RunRecord]) -> str:
    """One self-contained HTML page that compares at least two runs; all of its text is escaped.

    Runs whose recipes differ in the seed only are drawn together. Unfinished runs are marked.

    Raises:
        UserError: fewer than two runs, or more recipes than colors can distinguish.
    """
    if len(records) < 2:
        raise UserError("a comparison needs at least two runs")
    series = as_series(records)
    evaluated = {
        one.letter: (one.style, [r.after for r in one.records if r.after]) for one in series
    }
    shown = shown_transcripts(series)
    return render(
        "comparison.html",
        title=f"{len(records)} runs compared",
        series=series,
        unfinished=[(name, run.state()) for s in series for name, run in s.runs if run.state()],
        differing=differing_settings(series),
        settings_in_all=len({name for r in records for name in flat(r.recipe)}),
        pictures=accuracy_pictures(series),
        warnings=warnings(records),
        gains=gains(series),
        pass_at_k=pass_at_k_chart({k: v for k, v in evaluated.items() if v[1]}, votes=False),
        bands=len(evaluated) <= 3,
        equal=equal_and_not(records),
        axes=AXES,
        sections=curves(series),
        costs=costs(series),
        columns=shown,
        transcripts=transcripts({name: run.after for name, run in shown.items() if run.after}),
        samples_shown=SAMPLES,
        date=datetime.now().strftime("%Y-%m-%d %H:%M"),
    )


def differing_settings(series: Sequence[Series]) -> dict[str, list[str]]:
    """{setting: its value in each series}, only for settings in which any two runs differ."""
    recipes = [[flat(record.recipe) for record in one.records] for one in series]
    everything = list(chain.from_iterable(recipes))
    found = {}
    for name in dict.fromkeys(chain.from_iterable(everything)):
        values = [written(recipe[name]) if name in recipe else ABSENT for recipe in everything]
        if len(set(values)) > 1:
            found[name] = [
                ", ".join(dict.fromkeys(written(r[name]) if name in r else ABSENT for r in several))
                for several in recipes
            ]
    return found


def accuracy_pictures(series: Sequence[Series]) -> dict[str, list[dict]]:
    """{accuracy: a row for each run, and a row with the mean before runs of several seeds}."""
    measured = [
        (one, [(run, {row["name"]: row for row in headline(run)}) for run in one.records])
        for one in series
    ]
    everything = (rows for _, runs in measured for _, rows in runs)
    pictures = {}
    for what in dict.fromkeys(chain.from_iterable(everything)):
        rows = []
        for one, runs in measured:
            found = [(run, rows_of.get(what, {})) for run, rows_of in runs]
            several = len(found) > 1
            if several and (mean := _mean_and_range([row.get("after") for _, row in found])):
                name = f"{one.label}, mean of {len(found)}"
                rows.append({"series": one, "name": name, "kind": "mean", "after": mean})
            rows += [
                {
                    "series": one,
                    "name": f"seed {run.recipe['seed']}" if several else one.label,
                    "kind": "seed" if several else "run",
                    "after": row.get("after"),
                    "before": row.get("before"),
                }
                for run, row in found
            ]
        if any(row["after"] for row in rows):
            pictures[what] = rows
    return pictures


def _mean_and_range(intervals: list[Interval | None]) -> Interval | None:
    values = [interval.value for interval in intervals if interval]
    return Interval(fmean(values), min(values), max(values)) if values else None


def gains(series: Sequence[Series]) -> dict[str, object]:
    """Each run against the first one, problem by problem: {"first": …, "rows": …}.

    Runs that were measured on other problems are left out.
    """
    runs = [(one, name, run) for one in series for name, run in one.runs if run.after]
    rows = [
        (one, name, differences)
        for one, name, run in runs[1:]
        if (differences := paired(runs[0][-1].after, run.after))
    ]
    return {"first": runs[0][:2] if runs else None, "rows": rows}


def warnings(records: Sequence[RunRecord]) -> list[str]:
    """What makes the accuracies hard to compare, one sentence each."""
    evaluations = [record.after for record in records if record.after]
    found = []
    if len({tuple(problems_of(e)) for e in evaluations}) > 1:
        found.append(
            "These runs were not measured on the same problems, so part of any difference in "
            "accuracy is a difference of problems."
        )
    if len({(e.samples, e.temperature) for e in evaluations}) > 1:
        found.append(
            "Samples differ in number or temperature, so only greedy accuracy is measured in the "
            "same way."
        )
    return found


def equal_and_not(records: Sequence[RunRecord]) -> dict[bool, list[str]]:
    """What is equal in all runs (True) and what is not (False), each with its numbers."""
    amounts: dict[str, tuple[list, Callable[[float], str]]] = {
        "training steps": ([r.steps for r in records], "{:,.0f}".format),
        "completions sampled in the steps": (
            [sum(completions_of(r).values()) for r in records],
            "{:,.0f}".format,
        ),
        "tokens in training": ([r.tokens for r in records], "{:,.0f}".format),
        "seconds in training": ([r.seconds for r in records], duration),
        "number of held-out problems": ([r.after.problems if r.after else 0 for r in records], str),
        "held-out accuracy before training": (
            [r.before.accuracy.value if r.before else 0.0 for r in records],
            lambda share: f"{100 * share:.1f} %",
        ),
    }
    found: dict[bool, list[str]] = {True: [], False: []}
    for what, (values, write) in amounts.items():
        if any(values):
            found[len(set(values)) == 1].append(f"{what} ({spread(values, write)})")
    return found


def curves(series: Sequence[Series]) -> list[tuple]:
    """(section, [(title, chart, {axis: picture}, note)]): metrics that two of the lines have."""
    metrics = [m for one in series for record in one.records for m in record.metrics]
    found = []
    for section in sections(metrics):
        drawn = [
            (title, chart, pictures, note)
            for chart in section.charts
            for title, key in _pictures_of(chart)
            for pictures, note in [_against_each_axis(key, chart, series)]
            if pictures
        ]
        if drawn:
            found.append((section, drawn))
    return found


def _pictures_of(chart: Chart) -> Iterator[tuple[str, str]]:
    """(title, key): here every metric has a picture of its own."""
    for key, label in chart.metrics.items():
        if key == "rewards/correctness/mean":  # drawn as the accuracy
            continue
        yield (f"{chart.title}: {label}" if len(chart.metrics) > 1 else chart.title), key


def _against_each_axis(
    key: str, chart: Chart, series: Sequence[Series]
) -> tuple[dict[str, Markup], str]:
    """{axis: picture}, and the text below them."""
    several = [one.lines(key, chart.look) for one in series]
    pictures, note = {}, ""
    for axis in AXES:
        lines = [lines[axis] for lines in several if axis in lines]
        if len(lines) >= min(2, len(series)):
            pictures[axis] = plot(lines, axis, chart.share, settled=chart.settled)
            note = settled_note(chart, lines)
    return pictures, note


def costs(series: Sequence[Series]) -> dict[str, list]:
    """{"head": column names, "rows": (series, run's name, its values)}; empty columns left out."""
    found = [(one, name, cost_of(run)) for one in series for name, run in one.runs]
    head = [
        column
        for column in found[0][-1]
        if any(values[column] not in (None, 0) for *_, values in found)
    ]
    return {
        "head": head,
        "rows": [(one, name, [values[column] for column in head]) for one, name, values in found],
    }


def cost_of(record: RunRecord) -> dict[str, object]:
    """What a run's training took, and on which machine; None for unknown values."""
    hardware = record.result.get("hardware", {})
    sampling = math.fsum(record.series("seconds/sampling").values())
    return {
        "steps": record.steps,
        "completions": sum(completions_of(record).values()),
        "tokens": record.tokens,
        "time": duration(record.seconds),
        "in sampling": f"{sampling / record.seconds:.0%}" if sampling else None,
        "tokens/s": round(record.tokens / record.seconds) if record.seconds else None,
        "device": hardware.get("gpu") or hardware.get("device"),
        "peak GPU memory": hardware.get("peak_gpu_memory"),
    }


def shown_transcripts(series: Sequence[Series]) -> dict[str, RunRecord]:
    """{column's name: run} whose completions are shown side by side: the first of each series."""
    found: dict[str, RunRecord] = {}
    for one in series:
        record = next((r for r in one.records if r.after), None)
        if record is not None and len(found) < COLUMNS:
            seed = f", seed {record.recipe['seed']}" if len(one.records) > 1 else ""
            found[f"{one.letter} {one.label}{seed}"] = record
    return found
