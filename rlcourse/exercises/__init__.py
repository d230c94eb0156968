"""What students write: one folder a lesson, one file a function, named after it.

Each file declares one ``EXERCISE``: the reference, its cases, known mistakes, other right answers
and hints. How such a declaration is used is in ``rlcourse.checks``.

    get("grpo_loss")    the declaration of that function
    all()               all of them, in lesson order
"""

from difflib import get_close_matches
from functools import cache
from importlib import import_module

from rlcourse.checks.exercise import Exercise
from rlcourse.errors import UserError

__all__ = ["LESSONS", "all", "get"]

# Folder and files, in the order of the course.
LESSONS: dict[str, tuple[str, ...]] = {
    "start_here": ("mean_reward",),
    "policies": (
        "sample_tokens",
        "completion_mask",
        "token_logprobs",
        "token_entropy",
        "masked_mean",
        "sft_loss",
        "extract_answer",
        "correctness_reward",
        "format_reward",
        "returns_to_go",
    ),
    "policy_gradient": (
        "score_function",
        "exact_policy_gradient",
        "monte_carlo_policy_gradient",
        "reinforce_loss",
        "reinforce_step",
    ),
    "baselines": (
        "weighted_scores",
        "group_mean_advantages",
        "leave_one_out_advantages",
        "gradient_variance",
        "optimal_baseline",
    ),
    "importance_sampling": (
        "importance_weights",
        "effective_sample_size",
        "off_policy_loss",
        "kl_divergence",
        "kl_estimates",
    ),
    "ppo": (
        "fisher_vector_product",
        "conjugate_gradient",
        "backtracking_line_search",
        "ppo_clip_loss",
        "test_ppo_clip_loss",
        "gae",
        "value_loss",
        "kl_shaped_rewards",
        "whiten",
    ),
    "grpo": (
        "group_normalized_advantages",
        "test_group_normalized_advantages",
        "grpo_loss",
        "grpo_gradient_coefficient",
        "grpo_step",
    ),
    "beyond_grpo": (
        "aggregate",
        "dr_grpo_loss",
        "dapo_loss",
        "informative_groups",
        "overlong_penalty",
        "gspo_loss",
        "sign_advantages",
        "target_logprobs",
    ),
    "reward_models": (
        "preference_probability",
        "bradley_terry_loss",
        "last_token_index",
        "reward_accuracy",
        "hacking_completions",
        "robust_reward",
    ),
    "dpo": (
        "optimal_policy",
        "sequence_logprobs",
        "implicit_rewards",
        "preference_pairs",
        "dpo_loss",
        "test_dpo_loss",
    ),
    "debugging": (
        "probe_gap",
        "probe_equal_rewards",
        "probe_shuffled_rewards",
        "probe_mask",
        "diagnose",
    ),
    "gsm8k": (
        "extract_tagged_answer",
        "pass_at_k",
        "majority_vote",
        "bootstrap_interval",
    ),
    "three_policies": (
        "truncated_weights",
        "decoupled_loss",
        "cispo_loss",
        "changed_share",
    ),
    "elicit_or_learn": (
        "pass_at_k_curve",
        "majority_reward",
        "difficulty_weight",
        "fit_entropy_reward",
    ),
    "environments": ("calculator", "rollout_env", "action_mask", "reverse_kl_advantages"),
}
# Names of earlier versions, and what the functions are called now.
RENAMED = {"sequence_level_loss": "gspo_loss"}


@cache
def _by_name() -> dict[str, Exercise]:
    return {
        name: import_module(f"rlcourse.exercises.{lesson}.{name}").EXERCISE
        for lesson, names in LESSONS.items()
        for name in names
    }


def all() -> list[Exercise]:
    """All exercises, in lesson order."""
    return list(_by_name().values())


def get(name: str) -> Exercise:
    """The exercise of that name; ``UserError`` with the nearest name when there is none."""
    exercises = _by_name()
    if name in exercises:
        return exercises[name]
    if name in RENAMED:
        raise UserError(f"The exercise “{name}” is called “{RENAMED[name]}” now.")
    nearest = get_close_matches(str(name), exercises, n=1, cutoff=0.0)
    raise UserError(f"There is no exercise “{name}”; did you mean “{nearest[0]}”?")
