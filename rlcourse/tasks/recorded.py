"""Recorded runs, for lesson 10: what they logged, and what was wrong with them.

They are real runs of `grpo` on the embedded model, from the policy that the recipe `sft` makes.
"""

import json
from pathlib import Path

from torch import Tensor, tensor
from torch import float64 as _float64

SHOWN = Path(__file__).with_name("recorded_runs.json")


def recorded_runs(path: Path = SHOWN) -> list[tuple[dict, str]]:
    """(run, cause) of each recorded run; the cause of a run with nothing wrong is "healthy".

    A run is a dict: metrics by their names in ``metrics.jsonl``, each (steps,) float64, NaN where
    there was nothing to count; the recipe's settings, each a number; and "samples", what the
    trained policy answers to three questions.
    """
    return [
        (_metrics(run["metrics"]) | run["settings"] | {"samples": run["samples"]}, run["cause"])
        for run in json.loads(path.read_text("utf-8"))
    ]


def _metrics(recorded: dict) -> dict[str, Tensor]:
    nan = float("nan")
    return {
        name: tensor([nan if value is None else value for value in values], dtype=_float64)
        for name, values in recorded.items()
    }
