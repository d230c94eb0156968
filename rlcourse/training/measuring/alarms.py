"""Warnings that a run prints while there is time to stop it: a signal has left its range.

None of them needs to know what is right. Each compares a metric with its range in healthy runs.
``rlcourse report`` reads the same metrics afterwards, and more closely.
"""

from collections.abc import Callable
from dataclasses import dataclass

from rlcourse.training.recipes.settings import Recipe

# How many nats per token between sampler and trainer rounding can explain, on average.
ROUNDING = {"float32": 1e-3, "bfloat16": 5e-2, "float16": 1e-2}


@dataclass(frozen=True)
class Alarm:
    """A condition on a step's metrics, how many steps in a row it must hold, and the warning."""

    holds: Callable[[dict, Recipe], bool]
    says: str
    steps: int = 1


def _is(name: str, test: Callable[[float], bool]) -> Callable[[dict, Recipe], bool]:
    return lambda metrics, recipe: name in metrics and test(metrics[name])


ALARMS = (
    Alarm(
        lambda metrics, recipe: metrics.get("gap/mean", 0.0) > ROUNDING[recipe.dtype],
        "sampler and trainer differ by {gap/mean:.2g} nats per token, more than rounding explains: "
        "do both have the same weights, temperature, positions, and dropout off?",
    ),
    Alarm(
        _is("loss_tokens", lambda share: abs(share - 1) > 1e-3),
        "the loss gives a gradient to {loss_tokens:.3g} tokens for each one that was written: "
        "does the mask end at the EOS, and with it?",
    ),
    Alarm(
        _is("advantages/equal_rewards", lambda size: size > 0.01),
        "groups of equal rewards have advantages of {advantages/equal_rewards:.2g} on average, "
        "not 0: is each completion compared with those of its own question?",
    ),
    Alarm(
        _is("completions/clipped_ratio", lambda share: share > 0.95),
        "{completions/clipped_ratio:.0%} of the completions are cut off before they end: raise "
        "max_tokens, or read some of them to see why they do not stop",
        steps=3,
    ),
    Alarm(
        lambda metrics, recipe: (
            metrics.get("weights_changed", 1.0) < 0.5 and metrics.get("grad_norm", 0.0) > 0
        ),
        "only {weights_changed:.0%} of the weights change, though there is a gradient: is lr too "
        "small for the precision in which they are kept?",
        steps=3,
    ),
    Alarm(
        lambda metrics, recipe: (
            metrics.get("frac_reward_zero_std") == 1.0 and recipe.method.compares_groups
        ),
        "in five steps no group had two different rewards (accuracy {accuracy:.2f}), so there is "
        "nothing left to learn from: take harder problems, easier ones, or larger groups",
        steps=5,
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
            if held == alarm.steps:
                continue
            self._held[alarm] = held + 1 if alarm.holds(metrics, self._recipe) else 0
            if self._held[alarm] == alarm.steps:
                sentences.append(f"step {metrics['step']}: {alarm.says.format(**metrics)}")
        return sentences
