"""The metrics that are drawn, under the questions that they answer, with notes on reading them."""

from collections.abc import Container, Iterable
from dataclasses import dataclass, field

from rlcourse.reports.run_record import is_finite

MODIFIERS = ("_low", "_high")  # the ends of a metric's interval: drawn as its band
NOT_DRAWN = {"step", "tokens"}
ROUNDING = 1e-4  # more than float32's error of a ratio or of a sum over a completion's tokens
STYLES = {"right": "right", "chosen": "right", "wrong": "wrong", "rejected": "wrong"}


@dataclass(frozen=True)
class Chart:
    """One picture: its metrics {key: label}, one line each."""

    title: str
    note: str  # what to read in it, and the unit
    metrics: dict[str, str]
    share: bool = False  # the axis is 0–1
    look: str = "raw"  # see ``charts.Line``
    usual: float | None = None  # not drawn where it never leaves this value

    def keys_in(self, found: Container[str]) -> list[str]:
        """The metrics of the chart that were recorded."""
        return [key for key in self.metrics if key in found]

    def stays(self, values: dict[str, list[float]]) -> bool:
        """Whether its metrics are at their usual value throughout, but for rounding."""
        known = [value for key in self.keys_in(values) for value in values[key]]
        usual = self.usual
        return usual is not None and bool(known) and all(abs(v - usual) < ROUNDING for v in known)


@dataclass(frozen=True)
class Section:
    """Charts that answer one question."""

    question: str
    note: str
    charts: list[Chart] = field(default_factory=list)
    constant: list[Chart] = field(default_factory=list)  # at their usual value throughout


def one(key: str, title: str, note: str, **how) -> Chart:
    """A chart of a single metric."""
    return Chart(title, note, {key: ""}, **how)


LENGTHS = {
    "completions/mean_length": "all",
    "completions/mean_length_right": "right",
    "completions/mean_length_wrong": "wrong",
}
PAIRS = {"rewards/chosen": "chosen", "rewards/rejected": "rejected"}
SECONDS = {"seconds": "all", "seconds/sampling": "sampling"}
GAP = {"gap/mean": "mean", "gap/max": "max"}
CLIPPED = {"clip_ratio": "by the loss", "clip_ratio/low": "low end", "clip_ratio/high": "high end"}
SILENT = {"frac_reward_zero_std": "measured", "frac_reward_zero_std_expected": "expected"}
SHARE = {"share": True}
MEASURED = {"share": True, "look": "dots"}  # now and then, so every value is a dot
CATALOG = [
    Section(
        "Did it learn?",
        "Held-out accuracy is the evidence. The rest is what training saw of itself: a reward "
        "that rises while held-out accuracy does not is a reward that was gamed.",
        [
            one("eval/accuracy", "Held-out accuracy", "greedy, on problems never seen", **MEASURED),
            one("eval/pair_accuracy", "Held-out pairs", "share in the right order", **MEASURED),
            one("accuracy", "Accuracy in training", "share of sampled completions right", **SHARE),
            one("reward/mean", "Reward", "mean over the step's completions"),
            one("rewards/accuracies", "Pairs", "share of the step's pairs ordered right", **SHARE),
            one("rewards/margins", "Margin", "reward of the chosen minus that of the rejected"),
            Chart("Chosen and rejected", "their rewards; for dpo, the implicit ones", PAIRS),
        ],
    ),
    Section(
        "What did it write?",
        "Lengths that run away, or an entropy that falls to zero early, explain many failures.",
        [
            Chart("Completion length", "tokens: of all, of right and of wrong ones", LENGTHS),
            one("completions/clipped_ratio", "Cut off", "share that reached max_tokens", **SHARE),
            one("turns", "Turns", "the policy's turns in an episode"),
            one("entropy", "Entropy", "nats per token: how undecided the policy is"),
        ],
    ),
    Section(
        "How far did it move?",
        "",
        [
            one("kl", "Distance from the reference", "k3 estimate of the KL, nats per token"),
            one("kl_teacher", "Distance from the teacher", "nats per token, of what was sampled"),
            one(
                "kl_old",
                "Distance from the sampler",
                "nats per token, within the μ updates",
                usual=0,
            ),
            Chart(
                "Clipped",
                "share of tokens whose gradient the clip stops; a loss that reports less than its "
                "two ends together sees another ratio",
                CLIPPED,
                usual=0,
            ),
            one(
                "ratio/max",
                "Largest ratio",
                "of a token's probabilities, new to old",
                usual=1,
            ),
            one(
                "kl_max",
                "Largest KL of a token",
                "nats; single large ones occur in healthy runs, too",
                usual=0,
            ),
        ],
    ),
    Section(
        "Do sampler, trainer and loss agree?",
        "In a healthy run these stay at 0, 1 and 0 from the first step to the last.",
        [
            Chart(
                "Sampler against trainer",
                "|difference| of log-probs, nats per token",
                GAP,
                usual=0,
            ),
            one(
                "loss_tokens",
                "Tokens in the loss",
                "with a gradient, per token written",
                usual=1,
            ),
            one(
                "advantages/equal_rewards",
                "Advantages without a reason",
                "mean size in groups whose rewards are equal",
                usual=0,
            ),
        ],
    ),
    Section(
        "Was there a signal?",
        "",
        [
            Chart(
                "Groups without signal",
                "share whose completions all earned the same: their advantages are 0; expected "
                "is pᴳ + (1 − p)ᴳ at the mean p, a lower bound",
                SILENT,
                share=True,
            ),
            one("reward/std", "Spread of the reward", "standard deviation within a group, mean"),
            one("groups_drawn", "Questions asked", "until enough groups held right and wrong"),
            one("kept", "Kept", "completions rewarded, and so imitated"),
            one("grad_norm", "Gradient norm", "before it is shortened to max_grad_norm"),
            one("weights_changed", "Weights that moved", "share, of a sample of them", **SHARE),
            one("lr", "Learning rate", "after warmup and schedule", look="plain"),
            one(
                "loss",
                "Loss",
                "in policy gradients only its gradient means something",
                usual=0,
            ),
            one(
                "explained_variance",
                "Explained by the critic",
                "share of the variance of the returns that it predicts; below 0 it does harm",
            ),
            one("value_loss", "Critic's loss", "half its squared error, per token"),
        ],
    ),
    Section(
        "Machine",
        "",
        [
            one("tokens_per_second", "Speed", "tokens a second, sampling and training together"),
            Chart("Seconds a step", "in total, and those spent on sampling and scoring", SECONDS),
        ],
    ),
]


def sections(metrics: Iterable[dict]) -> list[Section]:
    """The catalog's sections with the charts that these steps' metrics can fill.

    Each reward function has its own line, and a metric that is in no chart is drawn under "Others".
    """
    values: dict[str, list[float]] = {}  # the finite ones
    for step in metrics:
        for key, value in step.items():
            if isinstance(value, (int, float)):
                values.setdefault(key, []).extend([value] if is_finite(value) else [])
    filled = []
    for section in CATALOG:
        charts = [chart for chart in section.charts if chart.keys_in(values)]
        constant = [chart for chart in charts if chart.stays(values)]
        moving = [chart for chart in charts if chart not in constant]
        filled.append(Section(section.question, section.note, moving, constant))
    filled[0].charts.extend(_reward_parts(set(values)))
    known = {key for s in CATALOG for c in s.charts for key in c.metrics} | NOT_DRAWN
    known |= {key for chart in filled[0].charts for key in chart.metrics}
    others = sorted(
        key for key in values.keys() - known if not _is_part(key) and not key.endswith(MODIFIERS)
    )
    filled.append(Section("Others", "", [one(key, key, "") for key in others]))
    return [section for section in filled if section.charts or section.constant]


def _reward_parts(found: set[str]) -> list[Chart]:
    """One chart of all reward functions; none if correctness is the only one."""
    parts = {key: key.split("/")[1] for key in sorted(found) if _is_part(key)}
    if set(parts.values()) <= {"correctness"}:
        return []
    return [Chart("Parts of the reward", "each reward function's mean, unweighted", parts)]


def _is_part(key: str) -> bool:
    return key.startswith("rewards/") and key.endswith("/mean")
