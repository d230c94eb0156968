"""Several runs on one page: what differs, what each reached and cost, and their curves together.

Runs of one recipe with several seeds form one series.
"""

import json
import math
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from statistics import fmean
from string import ascii_uppercase

from rlcourse.errors import UserError
from rlcourse.evaluation import Interval
from rlcourse.reports.catalog import Chart, sections
from rlcourse.reports.charts import Line, plot, running_mean
from rlcourse.reports.html_pages import duration, flat, render, written
from rlcourse.reports.report import headline, paired, problems_of
from rlcourse.reports.run_record import RunRecord

MOST = 12  # series that colors and dashes can distinguish
POINTS = 120  # of each line
ABSENT = "–"


@dataclass(frozen=True)
class Series:
    """Runs whose recipes differ in nothing but the seed."""

    letter: str  # names it everywhere on the page
    label: str
    style: str  # the CSS class of its color and dash
    runs: list[tuple[str, RunRecord]]  # each with its name

    @property
    def records(self) -> list[RunRecord]:
        return [record for _, record in self.runs]

    @property
    def name(self) -> str:
        """The text in the legend."""
        if len(self.runs) == 1:
            return self.label
        seeds = {record.recipe["seed"] for record in self.records}
        counted = "seeds" if len(seeds) == len(self.runs) else "runs"
        return f"{self.label}, {len(self.runs)} {counted}"

    def line(self, key: str, look: str) -> Line | None:
        """A metric against the steps; None if a run has no value.

        Several runs give their mean at each step that all have made, and their range as the band.
        """
        curves = [_curve(record, key, smooth=look == "raw") for record in self.records]
        steps = [step for step in curves[0] if all(step in curve for curve in curves)]
        steps = steps[:: -math.ceil(len(steps) / POINTS) or 1][::-1]
        if not steps:
            return None
        across = [[curve[step] for curve in curves] for step in steps]
        points = list(zip(steps, map(fmean, across), strict=True))
        band = []
        if len(curves) > 1:
            band = [(x, min(ys), max(ys)) for x, ys in zip(steps, across, strict=True)]
        return Line(points, self.style, self.letter, band, "dots" if look == "dots" else "plain")


def _curve(record: RunRecord, key: str, smooth: bool) -> dict[int, float]:
    """{step: value}, smoothed where it is a noisy metric."""
    values = record.series(key)
    if key == "eval/accuracy" and record.before and values:
        values = {0: record.before.accuracy.value} | values
    return {int(x): y for x, y in running_mean(list(values.items()))} if smooth else values


def as_series(records: Sequence[RunRecord]) -> list[Series]:
    """The records in groups, in the given order.

    Raises:
        UserError: more groups than colors.
    """
    groups: dict[str, list[tuple[str, RunRecord]]] = {}
    for name, record in zip(run_names(records), records, strict=True):
        recipe = {key: value for key, value in record.recipe.items() if key != "seed"}
        groups.setdefault(json.dumps(recipe, sort_keys=True, default=str), []).append(
            (name, record)
        )
    if len(groups) > MOST:
        raise UserError(
            f"these runs have {len(groups)} different recipes, but a page shows at most {MOST}: "
            "name fewer runs"
        )
    stems = [_stem([name for name, _ in runs]) for runs in groups.values()]
    return [
        Series(letter, stem if stems.count(stem) == 1 else runs[0][0], f"s{n}", runs)
        for n, (letter, stem, runs) in enumerate(
            zip(ascii_uppercase, stems, groups.values(), strict=False)
        )
    ]


def run_names(records: Sequence[RunRecord]) -> list[str]:
    """Each run's directory name, with its parents' where two have the same."""
    paths = [
        record.directory.resolve().parts if record.directory else (record.name,)
        for record in records
    ]
    for depth in range(1, max(map(len, paths)) + 1):
        names = ["/".join(path[-depth:]) for path in paths]
        if len(set(names)) == len(names):
            break
    return names


def _stem(names: list[str]) -> str:
    """What names such as grpo-seed0, grpo-seed1 have in common; for one name, the name."""
    if len(names) == 1:
        return names[0]
    stems = {re.sub(r"[-_. ]*(?:seed|s)?[-_. =]*\d+$", "", name) for name in names}
    return stems.pop() if len(stems) == 1 and all(stems) else f"{names[0]} …"


def render_comparison(records: Sequence[RunRecord]) -> str:
    """One self-contained HTML page that compares at least two runs; all of its text is escaped.

    Runs whose recipes differ in the seed only are drawn together. Unfinished runs are marked.

    Raises:
        UserError: fewer than two runs, or more recipes than colors can distinguish.
    """
    if len(records) < 2:
        raise UserError("a comparison needs at least two runs")
    series = as_series(records)
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
        sections=curves(series),
        costs=costs(series),
    )


def differing_settings(series: Sequence[Series]) -> dict[str, list[str]]:
    """{setting: its value in each series}, only for settings in which any two runs differ."""
    recipes = [[flat(record.recipe) for record in one.records] for one in series]
    found = {}
    for name in dict.fromkeys(chain.from_iterable(chain.from_iterable(recipes))):
        values = [
            list(dict.fromkeys(written(r[name]) if name in r else ABSENT for r in several))
            for several in recipes
        ]
        if len(set(chain.from_iterable(values))) > 1:
            found[name] = list(map(", ".join, values))
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


def curves(series: Sequence[Series]) -> list[tuple]:
    """(section, [(title, chart, picture)]): metrics that two of the series have."""
    metrics = [m for one in series for record in one.records for m in record.metrics]
    found = []
    for section in sections(metrics):
        drawn = []
        for chart in section.charts:
            for title, key in _pictures_of(chart):
                lines = [line for one in series if (line := one.line(key, chart.look))]
                if len(lines) >= min(2, len(series)):
                    drawn.append((title, chart, plot(lines, share=chart.share)))
        if drawn or section.constant:
            found.append((section, drawn))
    return found


def _pictures_of(chart: Chart) -> Iterator[tuple[str, str]]:
    """(title, key): here every metric has a picture of its own."""
    for key, label in chart.metrics.items():
        if key == "rewards/correctness/mean":  # drawn as the accuracy
            continue
        yield (f"{chart.title}: {label}" if len(chart.metrics) > 1 else chart.title), key


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
    return {
        "steps": record.steps,
        "completions": record.completions,
        "tokens": record.tokens,
        "time": duration(record.seconds),
        "in sampling": f"{record.sampling / record.seconds:.0%}" if record.sampling else None,
        "tokens/s": round(record.tokens / record.seconds) if record.seconds else None,
        "device": hardware.get("gpu") or hardware.get("device"),
        "peak GPU memory": hardware.get("peak_gpu_memory"),
    }
