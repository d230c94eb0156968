"""The mathematics of the course: pure functions on tensors, one module a lesson, in
lesson order.

Shapes: B prompts with G completions each are N = B·G rows, rows of one prompt
contiguous; T completion tokens, right-padded; V the vocabulary. Log-probs are in
nats. A mask is bool or float, 1 on real completion tokens including the first EOS.
A loss is a scalar to be minimized, differentiable in `logprobs` only. Students
write these very functions, and the trainer runs them.
"""

from rlcourse.algorithms.baselines import (
    expected_score,
    gradient_variance,
    group_mean_advantages,
    leave_one_out_advantages,
    optimal_baseline,
)
from rlcourse.algorithms.evaluation import (
    bootstrap_interval,
    majority_vote,
    pass_at_k,
)
from rlcourse.algorithms.grpo import (
    group_normalized_advantages,
    grpo_gradient_coefficient,
    grpo_loss,
    grpo_step,
)
from rlcourse.algorithms.importance_sampling import (
    effective_sample_size,
    importance_weights,
    kl_divergence,
    kl_estimates,
    off_policy_loss,
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

__all__ = [
    "backtracking_line_search",
    "bootstrap_interval",
    "completion_mask",
    "conjugate_gradient",
    "effective_sample_size",
    "exact_policy_gradient",
    "expected_score",
    "fisher_vector_product",
    "gae",
    "gradient_variance",
    "group_mean_advantages",
    "group_normalized_advantages",
    "grpo_gradient_coefficient",
    "grpo_loss",
    "grpo_step",
    "importance_weights",
    "kl_divergence",
    "kl_estimates",
    "kl_shaped_rewards",
    "leave_one_out_advantages",
    "majority_vote",
    "masked_mean",
    "monte_carlo_policy_gradient",
    "off_policy_loss",
    "optimal_baseline",
    "pass_at_k",
    "ppo_clip_loss",
    "reinforce_loss",
    "reinforce_step",
    "returns_to_go",
    "sample_tokens",
    "score_function",
    "sft_loss",
    "token_entropy",
    "token_logprobs",
    "value_loss",
    "whiten",
]
