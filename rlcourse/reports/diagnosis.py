"""What a run's signals point to, and what they exclude: ``rlcourse report RUN`` prints it.

Each check reads metrics whose right value is known without knowing the answer. If one is out of its
range, the check says what causes that; if it is in range, the cause is excluded; and if a run did
not record it, the report says only that.
"""

from collections.abc import Callable
from dataclasses import dataclass
from statistics import fmean, median

from rlcourse.reports.run_record import RunRecord

ROUNDING = {  # gap/mean in nats that is possible without a fault
    "float32": 1e-3,
    "bfloat16": 5e-2,
    "float16": 1e-2,
}


@dataclass(frozen=True)
class Check:
    """`finds` says what is wrong, or None; `excludes` is what a run in range cannot have."""

    needs: tuple[str, ...]
    finds: Callable[["Reading"], str | None]
    excludes: str
    applies: Callable[["Reading"], bool] = lambda reading: True


@dataclass(frozen=True)
class Reading:
    """A run's metrics by name: at the first step, on the mean, and so on."""

    record: RunRecord

    def values(self, name: str) -> list[float]:
        return list(self.record.series(name).values())

    def first(self, name: str) -> float:
        return self.values(name)[0]

    def late(self, name: str) -> float:
        """The mean of the last quarter: one step is noise."""
        values = self.values(name)
        return fmean(values[-max(1, len(values) // 4) :])

    def mean(self, name: str) -> float:
        return fmean(self.values(name))

    def largest(self, name: str) -> float:
        return max(self.values(name))

    def setting(self, name: str, default=None):
        """A setting of the recipe, which an earlier version may have written without it."""
        value = self.record.recipe.get(name)
        return default if value is None else value

    @property
    def one_update(self) -> bool:
        return self.setting("num_iterations", 1) * self.setting("minibatches", 1) == 1


def _mask(run: Reading) -> str | None:
    share = run.mean("loss_tokens")
    if share > 1.001:
        return (
            f"loss_tokens is {share:.3g}: the loss has a gradient for more tokens than were "
            "written, so padding is counted. Look at the mask after the EOS."
        )
    if share < 0.999:
        return (
            f"loss_tokens is {share:.3g}: some tokens that were written have no gradient. If it is "
            "one a completion, the EOS is masked out: look at where the mask ends."
        )
    return None


def _gap(run: Reading) -> str | None:
    rounding = ROUNDING[run.setting("dtype", "float32")]
    first, late = run.first("gap/mean"), run.late("gap/mean")
    if run.values("loss_tokens") and run.mean("loss_tokens") > 1.001:
        return None  # padding, which was never sampled, makes a gap of its own
    if first > 1:
        return (
            f"gap/mean is {first:.2g} nats before anything is learned: the trainer scores other "
            "tokens than were sampled. Look for a shift by one, and at positions and prompts."
        )
    if first > rounding:
        heat, ratios = run.setting("temperature", 1.0), run.values("ratio/max")
        far = bool(ratios) and median(ratios) > 2  # no temperature near 1 moves a token so far
        suspect = (
            ""
            if heat == 1 or far
            else f"the temperature, {heat:g}, that is missing in one of them; "
        )
        return (
            f"gap/mean is {first:.2g} nats before anything is learned: sampler and trainer are not "
            f"one policy. Look for {suspect}dropout while scoring; another precision."
        )
    if late > rounding:
        return (
            f"gap/mean is {first:.1g} nats at the first step and {late:.2g} at the end: the "
            "sampler does not get the weights that are learned. Look at how they reach it."
        )
    return None


def _grouping(run: Reading) -> str | None:
    size = run.largest("advantages/equal_rewards")
    if size <= 0.01:
        return None
    return (
        f"advantages/equal_rewards reaches {size:.2g}: groups of equal rewards have advantages, so "
        "completions are compared with those of other questions. Look at how rewards are reshaped."
    )


def _weights(run: Reading) -> str | None:
    changed, norms = (run.record.series(name) for name in ("weights_changed", "grad_norm"))
    moved = [share for step, share in changed.items() if norms.get(step, 0) > 0]
    if not moved or (share := fmean(moved)) >= 0.5:
        return None
    return (
        f"weights_changed is {share:.0%} while grad_norm is {run.mean('grad_norm'):.2g}: "
        "updates are rounded away. Keep the weights in float32, or raise lr."
    )


def _clipping(run: Reading) -> str | None:
    outside = run.mean("clip_ratio/low") + run.mean("clip_ratio/high")
    if run.largest("clip_ratio") > 0 or outside == 0:
        return None
    return (
        f"clip_ratio is 0 while {outside:.1%} of the tokens have left the band (ratio/max "
        f"{run.largest('ratio/max'):.2g}): the loss sees a ratio of 1. Look at whether old "
        "log-probs are recomputed for every update."
    )


def _penalty(run: Reading) -> str | None:
    if run.late("kl") < 1e-4 or run.late("loss") >= 0:
        return None
    return (
        f"the loss is {run.late('loss'):.2g} at the end and kl {run.late('kl'):.2g}: with one "
        "update a batch the loss is β · KL, which cannot be negative. Look at the penalty's sign."
    )


def _unearned(run: Reading) -> str | None:
    first = run.first("reward/mean") - run.first("accuracy")
    late = run.late("reward/mean") - run.late("accuracy")
    if max(abs(first), abs(late)) < 0.1:
        return None
    when = "from the first step on" if abs(first) > 0.1 else "more and more"
    return (
        f"the reward is {run.late('reward/mean'):.2f} at the end and accuracy "
        f"{run.late('accuracy'):.2f}, and they diverge {when}: the reward pays for something else. "
        "Read the completions that it pays for, and what it pays if no answer can be read."
    )


def _length(run: Reading) -> str | None:
    share = run.mean("completions/clipped_ratio")
    if share < 0.9:
        return None
    return (
        f"{share:.0%} of the completions are cut off, so hardly any can be right. Raise max_tokens "
        f"(now {run.setting('max_tokens', '?')}), or read some and see why they do not stop."
    )


def _spread(run: Reading) -> str | None:
    share = run.mean("frac_reward_zero_std")
    if share < 0.6:
        return None
    expected = run.values("frac_reward_zero_std_expected")
    as_expected = bool(expected) and share - fmean(expected) < 0.15
    why = (
        f"as p^G + (1-p)^G predicts ({fmean(expected):.0%}) for groups of "
        f"{run.setting('group_size', '?')}: take larger ones"
        if as_expected
        else "more than groups of this size explain: some questions are always right and others "
        "never, or the samples have too little variety"
    )
    return f"{share:.0%} of the groups have no two different rewards, {why}."


CHECKS = (
    Check(("loss_tokens",), _mask, "a wrong mask"),
    Check(
        ("gap/mean",),
        _gap,
        "a stale sampler, a temperature missing in the loss, a shift by one, dropout",
    ),
    Check(("advantages/equal_rewards",), _grouping, "rewards compared across questions"),
    Check(("weights_changed", "grad_norm"), _weights, "updates that are rounded away"),
    Check(
        ("clip_ratio", "clip_ratio/low", "clip_ratio/high", "ratio/max"),
        _clipping,
        "a ratio that is always 1",
        lambda run: not run.one_update,
    ),
    Check(
        ("kl", "loss"),
        _penalty,
        "a KL penalty of the wrong sign",
        lambda run: (
            run.one_update
            and run.setting("beta", 0.0) > 0
            # Before the policy moves the loss of such a method is 0: all of it is the penalty.
            and abs(next(iter(run.values("loss")), 0.0)) < 1e-6
        ),
    ),
    Check(
        ("reward/mean", "accuracy"),
        _unearned,
        "a reward that pays for wrong answers",
        lambda run: run.setting("rewards", {}).get("format", 0) == 0,
    ),
    Check(("completions/clipped_ratio",), _length, "completions that are cut off"),
    Check(("frac_reward_zero_std",), _spread, "a lack of groups to learn from"),
)


def diagnosis(record: RunRecord) -> str:
    """What the signals of a run point to, exclude and leave open, as text for people."""
    run = Reading(record)
    if not run.values("reward/mean"):
        why = "no step yet" if not record.metrics else "no rewards: it samples nothing"
        return f"{record.name}: there is nothing to diagnose, because the run has {why}."
    found, excluded, missing, unknown = [], [], [], []
    for check in CHECKS:
        if not check.applies(run):
            continue
        absent = [name for name in check.needs if not run.values(name)]
        if absent:
            missing += absent
            unknown.append(check.excludes)
        elif sentence := check.finds(run):
            found.append(sentence)
        else:
            excluded.append(check.excludes)
    lines = [
        f"{record.name} · {record.recipe['algorithm']} · {record.steps} of "
        f"{record.recipe['steps']} steps · reward {run.first('reward/mean'):.2f} → "
        f"{run.late('reward/mean'):.2f}",
        "",
        *(f"✗ {sentence}" for sentence in found),
    ]
    if not found:
        lines.append("✓ It looks healthy: every signal that was recorded is in its range.")
    if excluded:
        lines += ["", f"Excluded: {'; '.join(excluded)}."]
    if missing:
        lines += ["", f"Not recorded: {', '.join(missing)}. So it may have {' or '.join(unknown)}."]
    return "\n".join(lines)
