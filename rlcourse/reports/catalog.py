"""The metrics that a report draws, under the questions that they answer. TensorBoard draws all."""

from collections.abc import Container
from dataclasses import dataclass

MODIFIERS = ("_low", "_high")  # the ends of a metric's interval: drawn as its band
STYLES = {"right": "right", "chosen": "right", "wrong": "wrong", "rejected": "wrong"}


@dataclass(frozen=True)
class Chart:
    """One picture: its metrics {key: label}, one line each."""

    title: str
    note: str  # what to read in it, and the unit
    metrics: dict[str, str]
    share: bool = False  # the axis is 0–1
    look: str = "raw"  # see ``charts.Line``

    def keys_in(self, found: Container[str]) -> list[str]:
        """The metrics of the chart that were recorded."""
        return [key for key in self.metrics if key in found]


def one(key: str, title: str, note: str, **how) -> Chart:
    """A chart of a single metric."""
    return Chart(title, note, {key: ""}, **how)


LENGTHS = {
    "completions/mean_length": "all",
    "completions/mean_length_right": "right",
    "completions/mean_length_wrong": "wrong",
}
PAIRS = {"rewards/chosen": "chosen", "rewards/rejected": "rejected"}
CLIPPED = {"clip_ratio": "by the loss", "clip_ratio/low": "low end", "clip_ratio/high": "high end"}
SILENT = {"frac_reward_zero_std": "measured", "frac_reward_zero_std_expected": "expected"}
SHARE = {"share": True}
MEASURED = {"share": True, "look": "dots"}  # now and then, so every value is a dot
CATALOG = {
    "Did it learn?": [
        one("eval/accuracy", "Held-out accuracy", "greedy, on problems never seen", **MEASURED),
        one("eval/pair_accuracy", "Held-out pairs", "share in the right order", **MEASURED),
        one("accuracy", "Accuracy in training", "share of sampled completions right", **SHARE),
        one("reward/mean", "Reward", "mean over the step's completions"),
        one("rewards/accuracies", "Pairs", "share of the step's pairs ordered right", **SHARE),
        one("rewards/margins", "Margin", "reward of the chosen minus that of the rejected"),
        Chart("Chosen and rejected", "their rewards; for dpo, the implicit ones", PAIRS),
    ],
    "What did it write?": [
        Chart("Completion length", "tokens: of all, of right and of wrong ones", LENGTHS),
        one("completions/clipped_ratio", "Cut off", "share that reached max_tokens", **SHARE),
        one("turns", "Turns", "the policy's turns in an episode"),
        one("entropy", "Entropy", "nats per token: how undecided the policy is"),
    ],
    "How far did it move?": [
        one("kl", "Distance from the reference", "k3 estimate of the KL, nats per token"),
        one("kl_teacher", "Distance from the teacher", "nats per token, of what was sampled"),
        Chart("Clipped", "share of tokens whose gradient the clip stops", CLIPPED),
        one("ratio/max", "Largest ratio", "of a token's probabilities, new to old"),
    ],
    "Was there a signal?": [
        Chart(
            "Groups without signal",
            "share whose completions all earned the same: their advantages are 0; expected is "
            "pᴳ + (1 − p)ᴳ at the mean p, a lower bound",
            SILENT,
            share=True,
        ),
        one("grad_norm", "Gradient norm", "before it is shortened to max_grad_norm"),
        one("lr", "Learning rate", "after warmup and schedule", look="plain"),
        one("loss", "Loss", "in policy gradients only its gradient means something"),
        one("value_loss", "Critic's loss", "half its squared error, per token"),
    ],
}


def sections(found: set[str]) -> dict[str, list[Chart]]:
    """The catalog's questions with the charts that these metrics can fill."""
    filled = {q: [chart for chart in of if chart.keys_in(found)] for q, of in CATALOG.items()}
    return {question: of for question, of in filled.items() if of}
