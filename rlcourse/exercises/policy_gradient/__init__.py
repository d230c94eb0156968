"""Lesson 02: what students write about the policy gradient, and how it goes wrong."""

from rlcourse.exercises.policy_gradient.bandit import EXACT_POLICY_GRADIENT, SCORE_FUNCTION
from rlcourse.exercises.policy_gradient.loss import REINFORCE_LOSS
from rlcourse.exercises.policy_gradient.monte_carlo import MONTE_CARLO_POLICY_GRADIENT
from rlcourse.exercises.policy_gradient.step import REINFORCE_STEP

EXERCISES = (
    SCORE_FUNCTION,
    EXACT_POLICY_GRADIENT,
    MONTE_CARLO_POLICY_GRADIENT,
    REINFORCE_LOSS,
    REINFORCE_STEP,
)
