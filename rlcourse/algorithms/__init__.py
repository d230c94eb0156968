"""The mathematics of the course: pure functions on tensors, one module a lesson, in
lesson order.

Shapes: B prompts with G completions each are N = B·G rows, rows of one prompt
contiguous; T completion tokens, right-padded; V the vocabulary. Log-probs are in
nats. A mask is bool or float, 1 on real completion tokens including the first EOS.
A loss is a scalar to be minimized, differentiable in `logprobs` only. Students
write these very functions, and the trainer runs them.
"""

from rlcourse.algorithms.baselines import (
    gradient_variance,
    group_mean_advantages,
    leave_one_out_advantages,
    optimal_baseline,
    weighted_scores,
)
from rlcourse.algorithms.beyond_grpo import (
    aggregate,
    dapo_loss,
    dr_grpo_loss,
    gspo_loss,
    informative_groups,
    overlong_penalty,
    sign_advantages,
    target_logprobs,
)
from rlcourse.algorithms.costs import (
    entropy_drift,
    fit_saturation,
    kl_to_start,
    pass_at_k_advantages,
)
from rlcourse.algorithms.debugging import (
    diagnose,
    probe_equal_rewards,
    probe_gap,
    probe_mask,
    probe_shuffled_rewards,
)
from rlcourse.algorithms.dpo import (
    dpo_loss,
    implicit_rewards,
    optimal_policy,
    preference_pairs,
    sequence_logprobs,
)
from rlcourse.algorithms.elicit_or_learn import (
    difficulty_weight,
    fit_entropy_reward,
    majority_reward,
    pass_at_k_curve,
)
from rlcourse.algorithms.environments import (
    action_mask,
    broken_prefix,
    calculator,
    realigned,
    reverse_kl_advantages,
    reverse_kl_loss,
    rollout_env,
    top_k_kl_loss,
)
from rlcourse.algorithms.grpo import (
    group_normalized_advantages,
    grpo_gradient_coefficient,
    grpo_loss,
    grpo_step,
)
from rlcourse.algorithms.gsm8k import (
    bootstrap_interval,
    majority_vote,
    pass_at_k,
)
from rlcourse.algorithms.importance_sampling import (
    effective_sample_size,
    importance_weights,
    kl_divergence,
    kl_estimates,
    off_policy_loss,
)
from rlcourse.algorithms.judges import (
    decoupled_advantages,
    error_rates,
    rubric_scores,
    unbiased_rewards,
)
from rlcourse.algorithms.policies import (
    completion_mask,
    masked_mean,
    returns_to_go,
    sample_tokens,
    sft_loss,
    token_entropy,
    token_logprobs,
)
from rlcourse.algorithms.policy_gradient import (
    exact_policy_gradient,
    monte_carlo_policy_gradient,
    reinforce_loss,
    reinforce_step,
    score_function,
)
from rlcourse.algorithms.ppo import (
    backtracking_line_search,
    conjugate_gradient,
    fisher_vector_product,
    gae,
    kl_shaped_rewards,
    ppo_clip_loss,
    value_loss,
    whiten,
)
from rlcourse.algorithms.reward_models import (
    bradley_terry_loss,
    last_token_index,
    preference_probability,
    reward_accuracy,
)
from rlcourse.algorithms.start_here import mean_reward
from rlcourse.algorithms.step_credit import (
    step_advantages,
    step_ids,
    value_advantages,
    weighted_vote,
)
from rlcourse.algorithms.three_policies import (
    changed_share,
    cispo_loss,
    decoupled_loss,
    truncated_weights,
)
from rlcourse.algorithms.whole_trainer import train_policy

__all__ = [
    "action_mask",
    "aggregate",
    "backtracking_line_search",
    "bootstrap_interval",
    "bradley_terry_loss",
    "broken_prefix",
    "calculator",
    "changed_share",
    "cispo_loss",
    "completion_mask",
    "conjugate_gradient",
    "dapo_loss",
    "decoupled_advantages",
    "decoupled_loss",
    "diagnose",
    "difficulty_weight",
    "dpo_loss",
    "dr_grpo_loss",
    "effective_sample_size",
    "entropy_drift",
    "error_rates",
    "exact_policy_gradient",
    "fisher_vector_product",
    "fit_entropy_reward",
    "fit_saturation",
    "gae",
    "gradient_variance",
    "group_mean_advantages",
    "group_normalized_advantages",
    "grpo_gradient_coefficient",
    "grpo_loss",
    "grpo_step",
    "gspo_loss",
    "implicit_rewards",
    "importance_weights",
    "informative_groups",
    "kl_divergence",
    "kl_estimates",
    "kl_shaped_rewards",
    "kl_to_start",
    "last_token_index",
    "leave_one_out_advantages",
    "majority_reward",
    "majority_vote",
    "masked_mean",
    "mean_reward",
    "monte_carlo_policy_gradient",
    "off_policy_loss",
    "optimal_baseline",
    "optimal_policy",
    "overlong_penalty",
    "pass_at_k",
    "pass_at_k_advantages",
    "pass_at_k_curve",
    "ppo_clip_loss",
    "preference_pairs",
    "preference_probability",
    "probe_equal_rewards",
    "probe_gap",
    "probe_mask",
    "probe_shuffled_rewards",
    "realigned",
    "reinforce_loss",
    "reinforce_step",
    "returns_to_go",
    "reverse_kl_advantages",
    "reverse_kl_loss",
    "reward_accuracy",
    "rollout_env",
    "rubric_scores",
    "sample_tokens",
    "score_function",
    "sequence_logprobs",
    "sft_loss",
    "sign_advantages",
    "step_advantages",
    "step_ids",
    "target_logprobs",
    "token_entropy",
    "token_logprobs",
    "top_k_kl_loss",
    "train_policy",
    "truncated_weights",
    "unbiased_rewards",
    "value_advantages",
    "value_loss",
    "weighted_scores",
    "weighted_vote",
    "whiten",
]

RENAMED = {"sequence_level_loss": "gspo_loss"}  # names of earlier versions


def __getattr__(name: str):
    if (
        name in RENAMED
    ):  # an ImportError: `from … import` would drop an AttributeError's words
        raise ImportError(f"rlcourse.algorithms.{name} is called {RENAMED[name]} now")
    raise AttributeError(f"module 'rlcourse.algorithms' has no attribute {name!r}")
