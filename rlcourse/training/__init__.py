"""One training loop for every algorithm: recipes, metrics, checkpoints, evaluation, report.

Everything here is imported on first use, so that ``rlcourse --help`` need not wait for torch.
"""

from importlib import import_module

_HOME = {
    "Recipe": "rlcourse.training.recipe",
    "load_recipe": "rlcourse.training.recipe",
    "parse_overrides": "rlcourse.training.recipe",
    "shipped_recipes": "rlcourse.training.recipe",
    "train": "rlcourse.training.run",
    "load_run": "rlcourse.training.outcome",
    "Run": "rlcourse.training.outcome",
    "RewardModel": "rlcourse.training.value_head",
    "Pair": "rlcourse.training.preferences",
    "read_pairs": "rlcourse.training.preferences",
    "write_pairs": "rlcourse.training.preferences",
    "pair_rewards": "rlcourse.training.preferences",
    "Interrupted": "rlcourse.signals",
    "Evaluation": "rlcourse.evaluation",
    "ExperimentReport": "rlcourse.evaluation",
    "Interval": "rlcourse.evaluation",
    "Transcript": "rlcourse.evaluation",
    "inspect_rollouts": "rlcourse.training.inspecting",
    "evaluate_episodes": "rlcourse.training.episodes",
    "imitate_episodes": "rlcourse.training.episodes",
    "packed_episodes": "rlcourse.training.episodes",
    "train_episodes": "rlcourse.training.episodes",
    "evaluate_policy": "rlcourse.evaluation",
    "transcripts_table": "rlcourse.evaluation",
    "render_report": "rlcourse.reports",
    "write_json": "rlcourse.files",
}
__all__ = sorted(_HOME)


def __getattr__(name: str):
    if name in _HOME:
        return getattr(import_module(_HOME[name]), name)
    raise AttributeError(f"module 'rlcourse.training' has no attribute {name!r}")
