"""One training loop for every algorithm: recipes, metrics, checkpoints, evaluation, report.

Everything here is imported on first use, so that ``rlcourse --help`` need not wait for torch.
"""

from rlcourse.on_first_use import on_first_use

_HOMES = {
    "Recipe": "rlcourse.training.recipes.settings",
    "Method": "rlcourse.training.recipes.methods",
    "add_method": "rlcourse.training.recipes.methods",
    "load_recipe": "rlcourse.training.recipes.recipe",
    "parse_overrides": "rlcourse.training.recipes.recipe",
    "shipped_recipes": "rlcourse.training.recipes.recipe",
    "train": "rlcourse.training.run",
    "load_run": "rlcourse.training.runs.outcome",
    "Run": "rlcourse.training.runs.outcome",
    "RewardModel": "rlcourse.training.networks.value_head",
    "Pair": "rlcourse.training.preferences.pairs",
    "read_pairs": "rlcourse.training.preferences.pairs",
    "write_pairs": "rlcourse.training.preferences.pairs",
    "pair_rewards": "rlcourse.training.preferences.learner",
    "Interrupted": "rlcourse.signals",
    "ExperimentReport": "rlcourse.evaluation",
    "inspect_rollouts": "rlcourse.training.measuring.inspecting",
    "evaluate_episodes": "rlcourse.training.episodes",
    "imitate_episodes": "rlcourse.training.episodes",
    "packed_episodes": "rlcourse.training.episodes",
    "train_episodes": "rlcourse.training.episodes",
    "evaluate_policy": "rlcourse.evaluation",
    "transcripts_table": "rlcourse.evaluation",
}
__all__ = sorted(_HOMES)
__getattr__ = on_first_use(__name__, _HOMES)
