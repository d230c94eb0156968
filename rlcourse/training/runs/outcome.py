"""What a run produced: in memory, as ``result.json``, and read back from its directory."""

from dataclasses import asdict, dataclass
from pathlib import Path

from rlcourse.errors import UserError
from rlcourse.evaluation import Evaluation, Interval
from rlcourse.machine import hardware, versions
from rlcourse.policy import Policy
from rlcourse.reports import RunRecord, read_metrics, read_run
from rlcourse.reports.run_record import Totals
from rlcourse.training.networks.value_head import RewardModel
from rlcourse.training.recipes.recipe import load_recipe
from rlcourse.training.recipes.settings import Recipe
from rlcourse.words import counted


@dataclass
class Run(Totals):
    """What training produced."""

    recipe: Recipe
    policy: Policy | None  # None where a reward model was trained
    metrics: list[dict]  # one dict a step
    before: Evaluation | None = None
    after: Evaluation | None = None
    directory: Path | None = None
    reward_model: RewardModel | None = None
    pair_accuracy: Interval | None = None  # of the reward model on held-out pairs

    @property
    def trained(self) -> Policy | RewardModel:
        """What the run trained."""
        trained = self.policy if self.reward_model is None else self.reward_model
        assert trained is not None, "the run is not through"
        return trained

    def record(self) -> RunRecord:
        """What a report is made from; without ``result.json``'s facts until the run is through."""
        facts = result(self) if len(self.metrics) == self.recipe.steps else {}
        found = (self.metrics, self.before, self.after, self.pair_accuracy, facts, self.directory)
        kept = read_metrics(self.directory / "groups.jsonl") if self.directory else []
        return RunRecord(self.recipe.to_dict(), *found, kept)

    def summary(self) -> str:
        """A few lines: accuracy before → after with 95 % intervals, seconds, tokens."""
        lines = [
            f"{self.recipe.algorithm} · {counted(len(self.metrics), 'step')} · {self.seconds:.1f} s"
        ]
        lines[0] += f" · {self.tokens:,} tokens"
        if self.before and self.after:
            before, after = self.before, self.after
            k = max(before.pass_at)
            for name, old, new in (
                ("greedy accuracy", before.accuracy, after.accuracy),
                ("sampled accuracy", before.sampled_accuracy, after.sampled_accuracy),
                (f"pass@{k}", before.pass_at[k], after.pass_at[k]),
            ):
                lines.append(f"  {name:17} {old} → {new}")
            lines.append(f"  on {after.problems} held-out problems, 95 % intervals")
        if self.pair_accuracy:
            lines.append(f"  held-out pairs put in the right order {self.pair_accuracy}")
        if self.directory:
            lines.append(f"  report: {self.directory / 'report.html'}")
        return "\n".join(lines)

    __str__ = summary
    __repr__ = summary


def load_run(directory: str | Path, device: str | None = None) -> Run:
    """A finished run from its directory, the trained policy included.

    Raises:
        UserError: there is no finished run.
    """
    directory = Path(directory)
    if not (directory / "result.json").exists():
        raise UserError(f"{directory} holds no finished run")
    recipe, record = load_recipe(directory / "recipe.yaml"), read_run(directory)
    device = device or recipe.device
    run = Run(recipe, None, record.metrics, record.before, record.after, directory)
    run.pair_accuracy = record.pair_accuracy
    if recipe.method.trains_policy:
        run.policy = Policy.load(str(directory / "policy"), device=device)
    else:
        run.reward_model = RewardModel.load(directory / "reward_model", device)
    return run


def result(run: Run) -> dict:
    """What ``result.json`` holds: accuracies, intervals, seconds, tokens, versions, hardware."""
    evaluations = {"before": run.before, "after": run.after}
    return {
        "algorithm": run.recipe.algorithm,
        "steps": len(run.metrics),
        **{name: e and e.to_dict(transcripts=False) for name, e in evaluations.items()},
        **({"pair_accuracy": asdict(run.pair_accuracy)} if run.pair_accuracy else {}),
        "seconds": {
            "training": run.seconds,
            "evaluation": sum(e.seconds for e in evaluations.values() if e),
        },
        "tokens": {
            "training": run.tokens,
            "evaluation": sum(e.tokens for e in evaluations.values() if e),
        },
        "versions": versions(),
        "hardware": hardware(run.trained.device),
    }
