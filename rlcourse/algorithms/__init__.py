"""The mathematics of the course: pure functions on tensors, one module a lesson, in
lesson order.

Shapes: B prompts with G completions each are N = B·G rows, rows of one prompt
contiguous; T completion tokens, right-padded; V the vocabulary. Log-probs are in
nats. A mask is bool or float, 1 on real completion tokens including the first EOS.
A loss is a scalar to be minimized, differentiable in `logprobs` only. Students
write these very functions, and the trainer runs them.
"""
# ruff: noqa: F403

from inspect import isfunction

from rlcourse.algorithms.baselines import *
from rlcourse.algorithms.beyond_grpo import *
from rlcourse.algorithms.costs import *
from rlcourse.algorithms.debugging import *
from rlcourse.algorithms.dpo import *
from rlcourse.algorithms.elicit_or_learn import *
from rlcourse.algorithms.environments import *
from rlcourse.algorithms.grpo import *
from rlcourse.algorithms.gsm8k import *
from rlcourse.algorithms.importance_sampling import *
from rlcourse.algorithms.judges import *
from rlcourse.algorithms.policies import *
from rlcourse.algorithms.policy_gradient import *
from rlcourse.algorithms.ppo import *
from rlcourse.algorithms.reward_models import *
from rlcourse.algorithms.start_here import *
from rlcourse.algorithms.step_credit import *
from rlcourse.algorithms.three_policies import *
from rlcourse.algorithms.whole_trainer import *

# whatever function one of these modules defines
__all__ = sorted(
    name
    for name, value in globals().items()
    if isfunction(value)
    and value.__module__.startswith(f"{__name__}.")
    and not name.startswith("_")
)
