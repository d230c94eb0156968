"""Warnings that a run prints while there is time to stop it: a signal has left its range.

None of them needs to know what is right. Each compares a metric with its range in healthy runs.
``rlcourse report`` reads the same metrics afterwards, and more closely.
"""

from collections.abc import Callable

from rlcourse.training.recipes.settings import Recipe

# How many nats per token between sampler and trainer rounding can explain, on average.
ROUNDING = {"float32": 1e-3, "bfloat16": 5e-2, "float16": 1e-2}


# How many steps in a row a condition on a step's metrics must hold, the condition, and the warning.
Alarm = tuple[int, Callable[[dict, Recipe], bool], str]
ALARMS: tuple[Alarm, ...] = (
    (
        1,
        lambda metrics, recipe: metrics.get("gap/mean", 0) > ROUNDING[recipe.dtype],
        "sampler and trainer differ by {gap/mean:.2g} nats per token, more than rounding explains: "
        "do both have the same weights, temperature, positions, and dropout off?",
    ),
    (
        1,
        lambda metrics, recipe: abs(metrics.get("loss_tokens", 1) - 1) > 1e-3,
        "the loss gives a gradient to {loss_tokens:.3g} tokens for each one that was written: "
        "does the mask end at the EOS, and with it?",
    ),
    (
        1,
        lambda metrics, recipe: metrics.get("advantages/equal_rewards", 0) > 0.01,
        "groups of equal rewards have advantages of {advantages/equal_rewards:.2g} on average, "
        "not 0: is each completion compared with those of its own question?",
    ),
    (
        3,
        lambda metrics, recipe: metrics.get("completions/clipped_ratio", 0) > 0.95,
        "{completions/clipped_ratio:.0%} of the completions are cut off before they end: raise "
        "max_tokens, or read some of them to see why they do not stop",
    ),
    (
        3,
        lambda metrics, recipe: (
            metrics.get("weights_changed", 1) < 0.5 and metrics.get("grad_norm", 0) > 0
        ),
        "only {weights_changed:.0%} of the weights change, though there is a gradient: is lr too "
        "small for the precision in which they are kept?",
    ),
    (
        5,
        lambda metrics, recipe: (
            metrics.get("frac_reward_zero_std") == 1 and recipe.method.compares_groups
        ),
        "in five steps no group had two different rewards (accuracy {accuracy:.2f}), so there is "
        "nothing left to learn from: take harder problems, easier ones, or larger groups",
    ),
)


class Alarms:
    """Watches a run, and gives each warning once."""

    def __init__(self, recipe: Recipe):
        self._recipe = recipe
        self._held = dict.fromkeys(ALARMS, 0)

    def heard(self, metrics: dict) -> list[str]:
        """The warnings that are due after this step."""
        sentences = []
        for alarm, held in self._held.items():
            steps, holds, says = alarm
            if held == steps:
                continue
            self._held[alarm] = held + 1 if holds(metrics, self._recipe) else 0
            if self._held[alarm] == steps:
                sentences.append(f"step {metrics['step']}: {says.format(**metrics)}")
        return sentences
