"""A run to scrub through: its curves with a cursor, and what the policy wrote at that step.

One fragment of HTML with its own style, script and data, for a run's report and for any other page.
Without scripts, it is a table of the steps.
"""

import json
from html import escape
from pathlib import Path

from rlcourse.reports.charts import thinned
from rlcourse.reports.run_record import RunRecord, is_finite

BUDGET = 250_000  # bytes of the data
# (groups of a step, one step in so many, tokens of a completion): the first that fits is used
SIZES = (
    *((3, 1, None), (2, 1, None), (1, 1, None), (1, 2, None)),
    *((1, 2, 400), (1, 2, 200), (1, 4, 100), (1, 8, 50)),
)
# What is said about a step, if the run has measured it: {metric: name}
FACTS = {
    "reward/mean": "mean reward",
    "entropy": "entropy, nats per token",
    "frac_reward_zero_std": "groups that agree",
    "completions/mean_length": "tokens a completion",
}
HERE = Path(__file__).parent


def scrubber(record: RunRecord) -> str:
    """The fragment for a run; "" if it kept no groups, like a run that imitates."""
    return fragment(run_data(record)) if record.kept_groups else ""


def fragment(data: dict) -> str:
    """The fragment for `data`, which `run_data` has made. All texts of the model are escaped."""
    style, script = ((HERE / f"scrub.{kind}").read_text("utf-8") for kind in ("css", "js"))
    # No text can end the element that holds it.
    values = json.dumps(data, ensure_ascii=False, separators=(",", ":")).replace("<", "\\u003c")
    return (
        f'<div class="rl-scrub"><style>{style}</style>{_table(data)}'
        f'<script type="application/json">{values}</script><script>{script}</script></div>'
    )


def run_data(record: RunRecord, budget: int = BUDGET) -> dict:
    """What the fragment shows of a run, in plain values for JSON; at most about `budget` bytes."""
    moments: list[dict] = []
    for groups, every, longest in SIZES:
        kept = record.kept_groups[::-every][::-1]  # the last one is among them
        moments = [_moment(line, record, groups, longest) for line in kept]
        if len(json.dumps(moments, ensure_ascii=False).encode()) <= budget:
            break
    rewards = thinned([*record.series("reward/mean").items()])
    return {
        "steps": record.steps,
        "reward": [[step, _short(value)] for step, value in rewards],
        "accuracy": [[step, *map(_short, numbers)] for step, *numbers in record.held_out()],
        "moments": moments,
    }


def _moment(line: dict, record: RunRecord, groups: int, longest: int | None) -> dict:
    metrics = next((m for m in record.metrics if m["step"] == line["step"]), {})
    facts = {
        name: _short(metrics[key]) for key, name in FACTS.items() if is_finite(metrics.get(key))
    }
    shown = [
        {
            "question": group["question"],
            "completions": [_completion(one, longest) for one in group["completions"]],
        }
        for group in line["groups"][:groups]
    ]
    return {"step": line["step"], "facts": facts, "groups": shown}


def _completion(one: dict, longest: int | None) -> dict:
    tokens, advantage = one["tokens"], [_short(value) for value in one["advantage"]]
    made = {"tokens": tokens[:longest], "reward": _short(one["reward"])}
    if advantage:
        made["advantage"] = advantage[:longest]
    if longest is not None and len(tokens) > longest:
        made["more"] = len(tokens) - longest
    return made


def _short(value: float) -> float:
    return float(f"{value:.4g}")


def _table(data: dict) -> str:
    """The steps as a table, which the script replaces."""
    accuracy = {step: value for step, value, *_ in data["accuracy"]}
    names = [name for name in FACTS.values() if any(name in m["facts"] for m in data["moments"])]
    head = "".join(f"<th>{escape(name)}</th>" for name in ("step", *names, "held-out accuracy"))
    rows = ""
    for moment in data["moments"]:
        values = [moment["step"], *(moment["facts"].get(name, "") for name in names)]
        values.append(accuracy.get(moment["step"], ""))
        rows += "<tr>" + "".join(f"<td>{value}</td>" for value in values) + "</tr>"
    table = f"<table><thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table>"
    return f'<div class="plain">{table}</div>'
