"""What a run's signals point to: ``rlcourse report RUN`` prints it.

Lesson 10's own `diagnose` reads the run. Here is what it reads, and a sentence for each cause.
"""

from statistics import fmean

import torch

from rlcourse.algorithms.debugging import diagnose
from rlcourse.reports.run_record import RunRecord

# What `diagnose` reads, and the value at which nothing is wrong.
HEALTHY = {
    **{"loss_tokens": 1.0, "weights_changed": 1.0, "ratio/max": 1.0, "gap/mean": 0.0},
    **{"clip_ratio": 0.0, "clip_ratio/low": 0.0, "clip_ratio/high": 0.0, "loss": 0.0},
    **{"advantages/equal_rewards": 0.0, "completions/clipped_ratio": 0.0},
    **{"reward/mean": 0.0, "accuracy": 0.0},
}
ROUNDING = {"bfloat16": 5e-2, "float16": 1e-2}  # gap/mean in nats without a fault; float32's: 1e-3
# Each cause, the metric that shows it, and what to say of the metric's values.
SENTENCES = {
    "padding_counted": (
        "loss_tokens",
        "is {mean:.3g}: the loss has a gradient for more tokens than were written, so padding is "
        "counted. Look at the mask after the EOS.",
    ),
    "masked_eos": (
        "loss_tokens",
        "is {mean:.3g}: some tokens that were written have no gradient. If it is one a completion, "
        "the EOS is masked out: look at where the mask ends.",
    ),
    "all_truncated": (
        "completions/clipped_ratio",
        "is {mean:.2g}: nearly all completions are cut off, so hardly any can be right. Raise "
        "max_tokens, or read some and see why they do not stop.",
    ),
    "wrong_grouping": (
        "advantages/equal_rewards",
        "reaches {most:.2g}: groups of equal rewards have advantages, so completions are compared "
        "with those of other questions. Look at how rewards are reshaped.",
    ),
    "missing_temperature": (
        "gap/mean",
        "is {first:.2g} nats before anything is learned: sampler and trainer are not one policy. "
        "Look for the temperature, {temperature:g}, that is missing in one of them.",
    ),
    "dropout": (
        "gap/mean",
        "is {first:.2g} nats before anything is learned: sampler and trainer are not one policy. "
        "Look for dropout while scoring; above 1 nat for a shift by one, positions and prompts.",
    ),
    "stale_sampler": (
        "gap/mean",
        "is {first:.1g} nats at the first step and {last:.2g} at the end: the sampler does not get "
        "the weights that are learned. Look at how they reach it.",
    ),
    "ratio_one": (
        "clip_ratio",
        "is 0 while tokens have left the band: the loss sees a ratio of 1. Look at whether old "
        "log-probs are recomputed for every update.",
    ),
    "bfloat16_weights": (
        "weights_changed",
        "is {mean:.2g} though there is a gradient: updates are rounded away. Keep the weights in "
        "float32, or raise lr.",
    ),
    "kl_sign": (
        "loss",
        "is {last:.2g} at the end: with one update a batch it is β · KL, which cannot be negative. "
        "Look at the penalty's sign.",
    ),
    "unreadable_gold": (
        "reward/mean",
        "and accuracy diverge from the first step on: the reward pays for something else. Read the "
        "completions that it pays for, and what it pays if no answer can be read.",
    ),
    "empty_answer": (
        "reward/mean",
        "and accuracy diverge more and more: the reward pays for something else. Read the "
        "completions that it pays for, and what it pays if no answer can be read.",
    ),
}


def as_recorded(record: RunRecord) -> dict:
    """Metrics, each (steps,), and settings, as `diagnose` takes them.

    A signal that says nothing in this run has its healthy value: one that was not recorded, the
    reward where not only right answers are paid, the loss where the penalty is only a part of it.
    """
    run: dict = {
        name: torch.tensor([values.get(m["step"], healthy) for m in record.metrics]).double()
        for name, healthy in HEALTHY.items()
        for values in [record.series(name)]
    }
    recipe = record.recipe
    # Some settings were not written by earlier versions.
    run |= {"temperature": recipe.get("temperature", 1.0), "beta": recipe.get("beta") or 0.0}
    updates = recipe.get("num_iterations", 1) * recipe.get("minibatches", 1)
    if updates > 1 or run["loss"][0].abs() > 1e-6:
        run["beta"] = 0.0
    if {name for name, weight in recipe.get("rewards", {}).items() if weight} - {"correctness"}:
        run["reward/mean"] = run["accuracy"]
    run["gap/mean"] *= 1e-3 / ROUNDING.get(recipe.get("dtype", "float32"), 1e-3)
    norms = record.series("grad_norm")
    still = torch.tensor([norms.get(m["step"], 0.0) == 0 for m in record.metrics])
    run["weights_changed"][still] = 1.0
    return run


def diagnosis(record: RunRecord) -> str:
    """What the signals of a run point to; of a healthy one, what they exclude and leave open."""
    rewards = [*record.series("reward/mean").values()]
    if not rewards:
        why = "no step yet" if not record.metrics else "no rewards: it samples nothing"
        return f"{record.name}: there is nothing to diagnose, because the run has {why}."
    late = fmean(rewards[-max(1, len(rewards) // 4) :])  # one step is noise
    lines = [
        f"{record.name} · {record.recipe['algorithm']} · {record.steps} of "
        f"{record.recipe['steps']} steps · reward {rewards[0]:.2f} → {late:.2f}",
        "",
    ]
    run = as_recorded(record)
    cause = diagnose(run)
    if cause != "healthy":
        metric, sentence = SENTENCES[cause]
        values = [*record.series(metric).values()]
        said = {"first": values[0], "last": values[-1], "mean": fmean(values), "most": max(values)}
        return "\n".join([*lines, f"✗ {metric} {sentence.format(**run | said)}"])
    lines.append("✓ It looks healthy: every signal that was recorded is in its range.")
    known = {metric: bool(record.series(metric)) for metric in HEALTHY}
    excluded = [cause for cause, (metric, _) in SENTENCES.items() if known[metric]]
    lines += ["", f"Excluded: {', '.join(excluded).replace('_', ' ')}."]
    if missing := [metric for metric, found in known.items() if not found]:
        possible = [cause for cause in SENTENCES if cause not in excluded]
        lines += ["", f"Not recorded: {', '.join(missing)}."]
        lines[-1] += f" So it may have {' or '.join(possible).replace('_', ' ')}." * bool(possible)
    return "\n".join(lines)
