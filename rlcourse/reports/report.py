"""A run as one HTML file that needs nothing else: numbers, curves, transcripts, settings."""

from datetime import datetime
from pathlib import Path

from jinja2 import Environment

from rlcourse.evaluation.transcripts import telling
from rlcourse.machine import hardware, versions
from rlcourse.reports.charts import curve, pass_at_k_chart

# metric → title, what to read in it, and whether its axis is 0–1
CURVES = {
    "eval/accuracy": ("Held-out accuracy", "greedy, on problems never trained on", True),
    "eval/pair_accuracy": ("Held-out pairs", "share put in the right order", True),
    "accuracy": ("Accuracy in training", "share of sampled completions that are right", True),
    "reward/mean": ("Reward", "mean over the step's completions", False),
    "frac_reward_zero_std": (
        "Groups without signal",
        "share whose completions all earned the same",
        True,
    ),
    "entropy": ("Entropy", "nats per token: how undecided the policy is", False),
    "completions/mean_length": ("Completion length", "tokens", False),
    "completions/clipped_ratio": ("Cut off", "share of completions that reached max_tokens", True),
    "rewards/accuracies": ("Pairs", "share of the step's pairs put in the right order", True),
    "rewards/margins": ("Margin", "reward of the chosen minus that of the rejected", False),
    "rewards/chosen": ("Chosen", "reward of the better completions; for dpo, the implicit", False),
    "rewards/rejected": ("Rejected", "reward of the worse completions", False),
    "kl": ("Distance from the start", "k3 estimate of the KL divergence, nats per token", False),
    "kl_old": ("Distance from the sampler", "nats per token, within the μ updates", False),
    "clip_ratio": ("Clipped", "share of tokens whose gradient the clip stops", False),
    "explained_variance": (
        "Explained by the critic",
        "share of the variance of the returns that it foresaw; below 0 it does harm",
        False,
    ),
    "value_loss": ("Critic's loss", "half its squared error, per token", False),
    "groups_drawn": ("Questions asked", "until enough groups held right and wrong", False),
    "kept": ("Kept", "completions rewarded, and so imitated", False),
    "loss": ("Loss", "in policy gradients only its gradient means something", False),
    "grad_norm": ("Gradient norm", "before it is shortened to max_grad_norm", False),
    "tokens_per_second": ("Speed", "tokens per second, sampling and training together", False),
}
TRANSCRIPTS = 10


def render_report(run) -> str:
    """The report of a run as a self-contained HTML page. All of its text is escaped."""
    environment = Environment(autoescape=True, trim_blocks=True, lstrip_blocks=True)
    environment.filters["percent"] = lambda share: f"{100 * share:.1f}"
    template = environment.from_string(
        Path(__file__).with_name("report.html").read_text(encoding="utf-8")
    )
    return template.render(
        run=run,
        recipe=run.recipe,
        comparisons=_comparisons(run),
        pass_at_k=pass_at_k_chart(run.before, run.after) if run.after else None,
        curves=_curves(run.metrics),
        transcripts=_transcripts(run),
        settings=run.recipe.to_dict(),
        machine=versions() | hardware((run.policy or run.reward_model).device),
        date=datetime.now().strftime("%Y-%m-%d %H:%M"),
    )


def _comparisons(run) -> list[dict]:
    """Each accuracy before and after, for the numbers at the top."""
    if run.pair_accuracy is not None:
        return [{"name": "Held-out pairs", "before": None, "after": run.pair_accuracy}]
    if run.after is None:
        return []
    best = max(run.after.pass_at)
    rows = [
        ("Greedy accuracy", lambda e: e.accuracy),
        ("Sampled accuracy", lambda e: e.sampled_accuracy),
        (f"pass@{best}", lambda e: e.pass_at[best]),
    ]
    return [
        {"name": name, "before": run.before and pick(run.before), "after": pick(run.after)}
        for name, pick in rows
    ]


def _curves(metrics: list[dict]) -> list[dict]:
    """The charts of those metrics that the run has."""
    drawn = []
    for key, (title, note, unit) in CURVES.items():
        points = [(m["step"], m[key]) for m in metrics if key in m]
        says_something = key not in ("clip_ratio", "kl_old") or any(y for _, y in points)
        if points and says_something:
            svg = curve(points, unit, noisy=key != "eval/accuracy")
            drawn.append({"title": title, "note": note, "key": key, "svg": svg})
    return drawn


def _transcripts(run) -> list[dict]:
    """Some problems with the greedy completion before and after."""
    columns = [e.transcripts for e in (run.before, run.after) if e is not None and e.transcripts]
    if not columns:
        return []
    return [
        {"problem": columns[0][i], "completions": [column[i] for column in columns]}
        for i in telling(*columns, count=TRANSCRIPTS)
    ]
