"""Recorded runs, read for what is wrong with them.

The visible cases are the runs that the lesson shows, the hidden ones runs with other seeds, which
lie beside this file: what grades a submission does not see this folder.
"""

from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Any

from rlcourse.algorithms.debugging import diagnose
from rlcourse.checks.calling import Case
from rlcourse.checks.cases import CaseSampler
from rlcourse.checks.exercise import Exercise, Mistake
from rlcourse.tasks.recorded import SHOWN, recorded_runs

HIDDEN = Path(__file__).with_name("hidden_runs.json")


@cache
def _runs(path: Path) -> list[dict[str, Any]]:
    return [
        {name: value for name, value in run.items() if name != "samples"}
        for run, _ in recorded_runs(path)
    ]


def _cases(draw: CaseSampler) -> Iterator[Case]:
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
        return "dropout" if run["temperature"] == 1 else "missing_temperature"
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
        return "dropout" if run["temperature"] == 1.0 else "missing_temperature"
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


EXERCISE = Exercise(
    reference=diagnose,
    lesson="10_debugging",
    section="Diagnosis",
    points=4,
    difficulty=4,
    minutes=30,
    cases=_cases,
    mistakes=(
        Mistake(
            "a diagnosis by the reward alone",
            _reward_only,
            "Most of these faults leave the reward curve as it is, and a healthy run with a small "
            "learning rate stays flat: look at signals whose right value is known.",
        ),
        Mistake(
            "a diagnosis by the largest single token",
            _largest_token,
            "In a healthy run single tokens have large ratios, too. Means, and where they stand at "
            "the first step, tell.",
        ),
        Mistake(
            "a diagnosis by the settings",
            _settings_only,
            "That a run has a temperature or a KL penalty does not mean that it goes wrong there: "
            "healthy runs have them, too.",
        ),
        Mistake(
            "a diagnosis that finds no run healthy",
            _instead(healthy=_always("bfloat16_weights")),
            "Where every signal is in its range, the run is healthy: say so.",
        ),
        Mistake(
            "`ratio_one` wherever nothing is clipped",
            _no_clipping,
            "With one update a batch no ratio leaves the band, and 0 is right. It is wrong where "
            "`clip_ratio/low` and `/high` say that tokens were outside.",
        ),
        Mistake(
            "a diagnosis that looks at the gap before the mask",
            _gap_before_mask,
            "Padding that is counted makes a gap, too, as nobody has sampled it: the mask explains "
            "the gap, the gap does not explain the mask.",
            telling=1,
        ),
        Mistake(
            "a gap judged by its last step",
            _last_gap,
            "At the end a stale sampler's gap is as large as any: at the *first* step, before "
            "anything is learned, it is still 0.",
            telling=1,
        ),
        Mistake(
            "an unearned reward judged by its last step",
            _last_reward,
            "References that cannot be read pay from the first step on; an empty answer has to be "
            "learned first.",
            telling=1,
        ),
        Mistake(
            "`dropout` where a temperature is missing",
            _instead(missing_temperature=_always("dropout")),
            "Both show at the first step. At a temperature of 1 none can be missing, so there it "
            "is dropout; at another one it is the first thing to suspect.",
            telling=1,
        ),
        Mistake(
            "`missing_temperature` at a temperature of 1",
            _instead(dropout=_always("missing_temperature")),
            "Dividing logits by 1 can be forgotten without harm: a gap at the first step of such a "
            "run has another cause.",
            telling=1,
        ),
        Mistake(
            "a masked EOS taken for healthy",
            _instead(masked_eos=_always("healthy")),
            "One token a completion is missing from the loss: `loss_tokens` is not exactly 1, and "
            "in a healthy run it is.",
            telling=1,
        ),
        Mistake(
            "a KL penalty of the wrong sign taken for healthy",
            _instead(kl_sign=_always("healthy")),
            "With one update a batch the loss is β · KL and nothing else, as the advantages of a "
            "group add up to 0: it cannot be negative.",
            telling=1,
        ),
        Mistake(
            "`wrong_grouping` taken for healthy",
            _instead(wrong_grouping=_always("healthy")),
            "`advantages/equal_rewards` is 0 to the last digit where completions are compared with "
            "their siblings.",
            telling=1,
        ),
        Mistake(
            "what is right in the mask taken for wrong",
            _instead(masked_eos=_always("padding_counted"), padding_counted=_always("masked_eos")),
            "Less than one token in the loss for each that was written: some are left out. More "
            "than one: padding is in it.",
            telling=1,
        ),
    ),
    alternatives=(_by_if, _by_ranges),
    hints=(
        "Begin with the signals that are exact in a healthy run (`loss_tokens`, "
        "`advantages/equal_rewards`), and go on to those that need a threshold.",
        "The gap tells three causes apart: by whether it is there at the first step, and by "
        "whether a temperature could be missing at all. The reward against `accuracy` tells two "
        "apart, in the same way.",
        '    if run["loss_tokens"].nanmean() > 1.001:\n'
        '        return "padding_counted"\n'
        "    ...\n"
        '    gap = run["gap/mean"]\n'
        "    if gap[0] > 1e-3:\n"
        '        return "missing_temperature" if run["temperature"] != 1 else "dropout"\n'
        "    if gap.max() > 1e-3:\n"
        '        return "stale_sampler"\n'
        "    ...\n"
        '    return "healthy"',
    ),
)
