"""Runs to compare; those of one recipe with several seeds form one series."""

import json
import math
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate
from statistics import fmean
from string import ascii_uppercase

from rlcourse.errors import UserError
from rlcourse.reports.charts import Line, running_mean
from rlcourse.reports.record import RunRecord

MOST = 12  # series that colors and dashes can distinguish
POINTS = 120  # of each line
AXES = ("steps", "completions", "tokens")


@dataclass(frozen=True)
class Series:
    """Runs whose recipes differ in nothing but the seed."""

    letter: str  # names it everywhere on the page
    label: str
    style: str  # the CSS class of its color and dash
    records: list[RunRecord]
    names: list[str]  # of the records

    @property
    def runs(self) -> list[tuple[str, RunRecord]]:
        """Each run with its name."""
        return list(zip(self.names, self.records, strict=True))

    @property
    def seeds(self) -> list[int]:
        """The runs' seeds."""
        return [record.recipe["seed"] for record in self.records]

    @property
    def name(self) -> str:
        """The text in the legend."""
        if len(self.records) == 1:
            return self.label
        counted = "seeds" if len(set(self.seeds)) == len(self.seeds) else "runs"
        return f"{self.label}, {len(self.records)} {counted}"

    @cached_property
    def places(self) -> dict[str, list[dict[int, float]]]:
        """{axis: {step: place} of each run}."""
        return {axis: [sampled_until(record, axis) for record in self.records] for axis in AXES}

    def lines(self, key: str, look: str) -> dict[str, Line]:
        """{axis: line} of a metric against the steps, or what was sampled up to then.

        Several runs give their mean at each step that all have made, and their range as the band.
        Axes on which a run has no place are absent, and all of them if it has no value.
        """
        curves = [_curve(record, key, smooth=look == "raw") for record in self.records]
        shared = [step for step in curves[0] if all(step in curve for curve in curves)]
        found = {}
        for axis, places in self.places.items():
            steps = [step for step in shared if all(step in place for place in places)]
            steps = steps[:: -math.ceil(len(steps) / POINTS) or 1][::-1]
            if not steps:
                continue
            xs = [fmean(place[step] for place in places) for step in steps]
            across = [[curve[step] for curve in curves] for step in steps]
            points = list(zip(xs, map(fmean, across), strict=True))
            band = []
            if len(curves) > 1:
                band = [(x, min(ys), max(ys)) for x, ys in zip(xs, across, strict=True)]
            drawn = "dots" if look == "dots" else "plain"
            found[axis] = Line(points, self.style, self.letter, band, drawn)
        return found


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
    names = [[name for name, _ in runs] for runs in groups.values()]
    stems = [_stem(several) for several in names]
    labels = [
        stem if stems.count(stem) == 1 else several[0]
        for stem, several in zip(stems, names, strict=True)
    ]
    return [
        Series(letter, label, f"s{n}", [record for _, record in runs], several)
        for n, (letter, label, runs, several) in enumerate(
            zip(ascii_uppercase, labels, groups.values(), names, strict=False)
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


def _curve(record: RunRecord, key: str, smooth: bool) -> dict[int, float]:
    """{step: value}, smoothed where it is a noisy metric."""
    values: dict = record.series(key)
    if key == "eval/accuracy" and record.before and values:
        values = {0: record.before.accuracy.value} | values
    return {int(x): y for x, y in running_mean(list(values.items()))} if smooth else values


def sampled_until(record: RunRecord, axis: str) -> dict[int, float]:
    """{step: its place on the axis}; completions and tokens are counted from the start."""
    steps = [metrics["step"] for metrics in record.metrics]
    if axis == "steps":
        return {step: step for step in [0, *steps]}
    amounts = completions_of(record) if axis == "completions" else record.series("tokens")
    if not amounts:
        return {}
    sums = accumulate((amounts.get(step, 0) for step in steps), initial=0)
    return dict(zip([0, *steps], sums, strict=True))


def completions_of(record: RunRecord) -> dict[int, int]:
    """{step: completions sampled}: their tokens over their mean length; empty where none were."""
    tokens, lengths = record.series("tokens"), record.series("completions/mean_length")
    return {step: round(tokens[step] / lengths[step]) for step in tokens if lengths.get(step)}


def spread(values: Iterable[float], write: Callable[[float], str]) -> str:
    """One number if all are equal, else from … to."""
    values = sorted(values)
    low, high = write(values[0]), write(values[-1])
    return low if low == high else f"{low} to {high}"
