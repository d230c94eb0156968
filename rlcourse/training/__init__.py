"""One training loop for every algorithm: recipes, metrics, checkpoints, evaluation, report.

Everything here is imported on first use, so that ``rlcourse --help`` need not wait for torch.
"""

from importlib import import_module

_HOME = {
    "Recipe": "recipe",
    "load_recipe": "recipe",
    "parse_overrides": "recipe",
    "shipped_recipes": "recipe",
    "train": "run",
    "load_run": "run",
    "Run": "run",
    "RewardModel": "scalar_model",
    "Pair": "preferences",
    "read_pairs": "preferences",
    "write_pairs": "preferences",
    "pair_rewards": "preferences",
    "Interrupted": "signals",
    "Evaluation": "evaluation",
    "Interval": "evaluation",
    "Transcript": "evaluation",
    "evaluate_policy": "evaluation",
    "transcripts_table": "transcripts",
    "render_report": "report",
    "write_json": "files",
}
__all__ = sorted(_HOME)


def __getattr__(name: str):
    if name in _HOME:
        return getattr(import_module(f"rlcourse.training.{_HOME[name]}"), name)
    raise AttributeError(f"module 'rlcourse.training' has no attribute {name!r}")
