"""A run as one HTML file that needs nothing else: numbers, curves, transcripts, settings."""

from markupsafe import Markup

from rlcourse.evaluation import Evaluation, Interval
from rlcourse.evaluation.transcripts import side_by_side
from rlcourse.reports.catalog import MODIFIERS, STYLES, Chart, sections
from rlcourse.reports.charts import Line, plot
from rlcourse.reports.html_pages import flat, render, written
from rlcourse.reports.run_record import RunRecord
from rlcourse.reports.scrubbing import scrubber

TRANSCRIPTS = 10


def render_report(record: RunRecord) -> str:
    """The report of a run as a self-contained HTML page. All of its text is escaped.

    `record` is from ``read_run``, or a run's own; it may be unfinished.
    """
    evaluations = {
        name: evaluation
        for name, evaluation in (("before", record.before), ("after", record.after))
        if evaluation is not None
    }
    return render(
        "report.html",
        run=record,
        recipe=record.recipe,
        evaluations=evaluations,
        headline=headline(record),
        readings=readings(evaluations),
        sections={
            question: [(chart, drawn(chart, record)) for chart in charts]
            for question, charts in sections({key for m in record.metrics for key in m}).items()
        },
        scrubber=Markup(scrubber(record)),
        transcripts=transcripts(evaluations),
        settings={name: written(value) for name, value in flat(record.recipe).items()},
    )


def measures(evaluation: Evaluation) -> dict[str, Interval]:
    """Every accuracy in an evaluation, by the name that readers know."""
    k = max(evaluation.pass_at)
    found = {
        "Greedy accuracy": evaluation.accuracy,
        "Sampled accuracy": evaluation.sampled_accuracy,
        f"pass@{k}": evaluation.pass_at[k],
        f"Majority vote of {k}": evaluation.majority_at[k],
    }
    if k == 1:  # all the same as sampled accuracy
        found = dict(list(found.items())[:2])
    return found


def headline(record: RunRecord) -> list[dict]:
    """Each accuracy before and after, for the numbers at the top."""
    if record.pair_accuracy is not None:
        return [{"name": "Held-out pairs", "before": None, "after": record.pair_accuracy}]
    before = measures(record.before) if record.before else {}
    after = measures(record.after) if record.after else {}
    return [
        {"name": name, "before": before.get(name), "after": after.get(name)}
        for name in (after or before)
    ]


def readings(evaluations: dict[str, Evaluation]) -> list[tuple[str, list[Interval | None], str]]:
    """(what, one interval for each evaluation, unit): how answers were read, and how long."""
    rows = [
        ("right by the task's rule, greedy", "accuracy", "%"),
        ("right read leniently, greedy", "lenient_accuracy", "%"),
        ("right by the task's rule, sampled", "sampled_accuracy", "%"),
        ("right read leniently, sampled", "sampled_lenient_accuracy", "%"),
        ("a number where the rule looks, sampled", "sampled_format_rate", "%"),
        ("format reward, sampled", "sampled_format_reward", ""),
        ("length of a sample", "length", "tokens"),
        ("length of right samples", "length_right", "tokens"),
        ("length of wrong samples", "length_wrong", "tokens"),
        ("samples cut off at max_tokens", "truncated", "%"),
    ]
    found = [
        (what, [getattr(e, name) for e in evaluations.values()], unit) for what, name, unit in rows
    ]
    return [row for row in found if any(row[1])]


def drawn(chart: Chart, record: RunRecord) -> dict:
    """The chart's picture for one run, its caption, and how many values could not be drawn."""
    lines, lost = [], 0
    keys = chart.keys_in({key for metrics in record.metrics for key in metrics})
    for i, key in enumerate(keys):
        label = chart.metrics[key] if len(keys) > 1 else ""
        values = record.series(key)
        lost += sum(key in m for m in record.metrics) - len(values)
        low, high = (record.series(key + end) for end in MODIFIERS)
        band = [(step, low[step], high[step]) for step in values if step in low and step in high]
        style = STYLES.get(label, f"s{i}" if label not in ("", "all") else "after")
        points = list(values.items())
        if chart.look == "dots" and (start := _at_the_start(key, record)):
            points = [(0, start.value), *points]
            band = [(0, start.low, start.high), *band]
        lines.append(Line(points, style, label, band, chart.look))
    return {"svg": plot(lines, share=chart.share), "lost": lost}


def _at_the_start(key: str, record: RunRecord) -> Interval | None:
    """Held-out accuracy at step 0, if the same problems were measured before training."""
    return record.before.accuracy if key == "eval/accuracy" and record.before else None


def transcripts(evaluations: dict[str, Evaluation]) -> Markup:
    """Some problems with what each evaluation's policy wrote, those whose outcome differs first."""
    columns = {name: e.transcripts for name, e in evaluations.items() if e.transcripts}
    if not columns:
        return Markup("")
    samples = max(e.samples for e in evaluations.values())
    return Markup(side_by_side(columns, samples, TRANSCRIPTS)._repr_html_())
