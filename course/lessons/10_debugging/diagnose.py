"""Recorded runs, read for what is wrong with them.

The visible cases are the runs that the lesson shows, the hidden ones runs with other seeds, which
lie beside this file: what grades a submission does not see this folder.
"""

from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Any

from rlcourse.algorithms.debugging import diagnose
from rlcourse.checks.declaring import Case, CaseSampler
from rlcourse.tasks.recorded import SHOWN, recorded_runs

HIDDEN = Path(__file__).with_name("hidden_runs.json")


@cache
def _runs(path: Path) -> list[dict[str, Any]]:
    return [
        {name: value for name, value in run.items() if name != "samples"}
        for run, _ in recorded_runs(path)
    ]


def cases(draw: CaseSampler) -> Iterator[Case]:
    for number, run in enumerate(_runs(HIDDEN if draw.hidden else SHOWN)):
        yield Case(f"run {number}", {"run": run})


def _instead(**causes: Callable[[dict, str], str]) -> Callable[[dict], str]:
    """The reference, with another answer where it says this: {cause: (run, cause) → cause}."""

    def wrong(run):
        cause = diagnose(run)
        return causes[cause](run, cause) if cause in causes else cause

    return wrong


def _always(answer: str) -> Callable[[dict, str], str]:
    return lambda run, cause: answer


def _reward_only(run):
    reward = run["reward/mean"]
    return "healthy" if reward[-5:].mean() > reward[:5].mean() + 0.1 else "stale_sampler"


def _largest_token(run):
    """Whatever has one large number somewhere is broken."""
    if run["ratio/max"].max() > 2 or run["gap/max"].max() > 1:
        return "stale_sampler"
    cause = diagnose(run)
    return cause if cause not in ("stale_sampler", "dropout", "missing_temperature") else "healthy"


def _settings_only(run):
    if run["temperature"] != 1:
        return "missing_temperature"
    if run["beta"] > 0:
        return "kl_sign"
    if run["num_iterations"] > 1:
        return "ratio_one"
    return "bfloat16_weights" if run["lr"] < 1e-4 else diagnose(run)


def _no_clipping(run):
    """Whatever never clips."""
    cause = diagnose(run)
    return "ratio_one" if cause == "healthy" and run["clip_ratio"].max() == 0 else cause


def _by_setting(run):
    cause = diagnose(run)
    if cause in ("missing_temperature", "dropout"):
        return "missing_temperature" if run["temperature"] != 1 else "dropout"
    return cause


def _gap_before_mask(run):
    cause, gap = diagnose(run), run["gap/mean"]
    if cause == "padding_counted" and gap[0] > 1e-3:
        return "missing_temperature" if run["temperature"] != 1 else "dropout"
    return cause


def _last_gap(run):
    cause = diagnose(run)
    if cause == "stale_sampler" and run["gap/mean"][-1] > 1e-3:
        return "missing_temperature" if run["temperature"] != 1 else "dropout"
    return cause


def _last_reward(run):
    cause = diagnose(run)
    return "unreadable_gold" if cause == "empty_answer" else cause


def _by_if(run):
    tokens = run["loss_tokens"]
    tokens = tokens[~tokens.isnan()]
    if len(tokens) and tokens.median() > 1.01:
        return "padding_counted"
    if len(tokens) and tokens.median() < 0.99:
        return "masked_eos"
    if run["completions/clipped_ratio"][:5].mean() > 0.8:
        return "all_truncated"
    if (run["advantages/equal_rewards"] > 0.05).any():
        return "wrong_grouping"
    if run["gap/mean"][:3].max() > 1e-4 and run["gap/mean"][0] > 1e-4:
        return "dropout" if run["ratio/max"].nanmean() > 2 else "missing_temperature"
    if run["gap/mean"][-5:].mean() > 1e-4:
        return "stale_sampler"
    if run["weights_changed"].median() < 0.7:
        return "bfloat16_weights"
    if (run["clip_ratio/high"] > run["clip_ratio"] + 1e-4).any():
        return "ratio_one"
    if run["beta"] and run["loss"][-5:].mean() < 0:
        return "kl_sign"
    surplus = run["reward/mean"] - run["accuracy"]
    if surplus.abs().max() < 0.1:
        return "healthy"
    return "unreadable_gold" if surplus[0] > 0.25 else "empty_answer"


def _by_ranges(run):
    def leaves(name, least, most):
        values = run[name][~run[name].isnan()]
        return len(values) > 0 and not least <= values.mean() <= most

    found = {
        "padding_counted": leaves("loss_tokens", 0, 1.002),
        "masked_eos": leaves("loss_tokens", 0.998, 9),
        "all_truncated": leaves("completions/clipped_ratio", 0, 0.9),
        "wrong_grouping": leaves("advantages/equal_rewards", -1, 1e-3),
    }
    gap = run["gap/mean"]
    if True in found.values():
        return next(cause for cause in found if found[cause])
    if gap.max() > 1e-3:
        if gap[0] < 1e-3:
            return "stale_sampler"
        return "dropout" if leaves("ratio/max", 0, 1.6) else "missing_temperature"
    if leaves("weights_changed", 0.5, 1):
        return "bfloat16_weights"
    if (run["clip_ratio/low"] + run["clip_ratio/high"]).any() and not run["clip_ratio"].any():
        return "ratio_one"
    if run["beta"] > 0 and run["loss"][-3:].mean() < 0:
        return "kl_sign"
    paid = run["reward/mean"] - run["accuracy"]
    if paid.max() < 0.15:
        return "healthy"
    return "unreadable_gold" if paid[0] > 0.3 else "empty_answer"


alternatives = (_by_if, _by_ranges)
# The docstring gives no threshold, so a fair case stands far from every one of the reference's.
boundaries = (("*", "no threshold is given"),)
