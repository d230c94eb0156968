"""A run as recorded in its directory, read without the weights: the source of every page.

The trainer makes the same record of a run in memory, so a page drawn at the end of training and one
drawn later from the directory are the same. A run that is still going has a record, too.
"""

import json
import math
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import yaml

from rlcourse.errors import UserError
from rlcourse.evaluation import Evaluation, Interval


class Totals:
    """What adds up over the steps of `metrics`."""

    metrics: list[dict]  # one dict a step

    @property
    def seconds(self) -> float:
        """Seconds spent in training steps, evaluation not counted."""
        return math.fsum(m["seconds"] for m in self.metrics if is_finite(m.get("seconds")))

    @property
    def tokens(self) -> int:
        """Tokens sampled (or imitated) in training."""
        return int(math.fsum(m["tokens"] for m in self.metrics if is_finite(m.get("tokens"))))


@dataclass
class RunRecord(Totals):
    """What is known of one run."""

    recipe: dict  # plain values, as recipe.yaml holds them
    metrics: list[dict]  # one dict a step
    before: Evaluation | None = None
    after: Evaluation | None = None
    pair_accuracy: Interval | None = None  # of a reward model on held-out pairs
    result: dict = field(default_factory=dict)  # result.json; empty until the run is finished
    directory: Path | None = None
    kept_groups: list[dict] = field(default_factory=list)  # of some steps

    @property
    def finished(self) -> bool:
        """Whether the run is finished: training, and the evaluation after it."""
        return bool(self.result)

    @property
    def name(self) -> str:
        """The directory's name, or the algorithm's if nothing was saved."""
        return self.directory.resolve().name if self.directory else self.recipe["algorithm"]

    @property
    def steps(self) -> int:
        """Training steps done."""
        return int(self.metrics[-1]["step"]) if self.metrics else 0

    def series(self, key: str) -> dict[int, float]:
        """{step: value} of a metric, if it is a finite number."""
        return {m["step"]: m[key] for m in self.metrics if key in m and is_finite(m[key])}

    def held_out(self) -> list[tuple[int, float, float, float]]:
        """(step, held-out accuracy, low, high) wherever measured, also before and after."""
        name = "eval/accuracy"
        value, low, high = (self.series(name + end) for end in ("", "_low", "_high"))
        found = {step: (value[step], low[step], high[step]) for step in value if step in low}
        for step, evaluation in ((0, self.before), (self.steps, self.after)):
            if evaluation is not None:
                one = evaluation.accuracy
                found.setdefault(step, (one.value, one.low, one.high))
        return [(step, *numbers) for step, numbers in sorted(found.items())]

    def state(self) -> str | None:
        """What is still missing, in a sentence; None for a finished run."""
        if self.finished:
            return None
        planned = self.recipe["steps"]
        first = self.directory / "warm_start" if self.directory else None
        if first and first.exists() and not (first / "result.json").exists():
            return f"This run is not finished: its warm start is not done, see {first}."
        if self.steps < planned:
            return f"This run is not finished: it is at step {self.steps} of {planned}."
        return "This run is not finished: its steps are done, but not the evaluation after them."


def is_finite(value) -> bool:
    """Whether a metric's value can be drawn: a number, and neither NaN nor infinite."""
    number = isinstance(value, (int, float)) and not isinstance(value, bool)
    return number and math.isfinite(value)


def read_run(directory: str | Path) -> RunRecord:
    """The record of the run in `directory`, finished or not; its weights are not read.

    Raises:
        UserError: there is no run, or one of its files cannot be read.
    """
    directory = Path(directory).expanduser()
    if not (directory / "recipe.yaml").is_file():
        raise UserError(
            f"{directory} holds no run: name a directory that `rlcourse train --out` has written"
        )
    result = _read_json(directory / "result.json", dict) or {}
    pairs = result.get("pair_accuracy")
    return RunRecord(
        _read_recipe(directory / "recipe.yaml"),
        read_metrics(directory / "metrics.jsonl"),
        _read_json(directory / "evaluation_before.json", Evaluation.from_dict),
        _read_json(directory / "evaluation_after.json", Evaluation.from_dict),
        pairs and Interval(**pairs),
        result,
        directory,
        read_metrics(directory / "groups.jsonl"),
    )


def read_metrics(path: Path) -> list[dict]:
    """The steps in a metrics.jsonl or groups.jsonl, without a last line that a kill cut short.

    Raises:
        UserError: another line cannot be read.
    """
    if not path.exists():
        return []
    steps = []
    lines = path.read_text(encoding="utf-8").splitlines()
    for number, line in enumerate(lines, start=1):
        try:
            steps.append(json.loads(line))
        except json.JSONDecodeError:
            if number < len(lines):
                raise UserError(f"{path}, line {number}, is not JSON: fix or delete it") from None
    return steps


def _read_recipe(path: Path) -> dict:
    try:
        recipe = yaml.safe_load(path.read_text(encoding="utf-8"))
        known = {"algorithm", "task", "policy", "steps", "seed"} <= recipe.keys()
    except (OSError, ValueError, AttributeError, yaml.YAMLError) as error:
        raise UserError(f"{path} cannot be read: {' '.join(str(error).split())}") from None
    if not known:
        raise UserError(f"{path} is not the recipe of a run: it must name algorithm, task, steps")
    return recipe


def _read_json(path: Path, make: Callable):
    """What `make` makes of the values in a file; None if there is no such file.

    Raises:
        UserError: the file is no JSON, or does not hold what this version writes.
    """
    if not path.exists():
        return None
    try:
        values = json.loads(path.read_text(encoding="utf-8"))
        return values and make(values)
    except (OSError, TypeError, KeyError, ValueError, AttributeError) as error:
        raise UserError(
            f"{path} cannot be read ({error}): fix or delete it, or use the version of rlcourse "
            "that wrote it"
        ) from None
