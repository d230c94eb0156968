"""Lesson 04: what students write about importance sampling and KL, and how it goes wrong."""

from rlcourse.exercises.importance_sampling.divergence import KL_DIVERGENCE
from rlcourse.exercises.importance_sampling.estimates import KL_ESTIMATES
from rlcourse.exercises.importance_sampling.loss import OFF_POLICY_LOSS
from rlcourse.exercises.importance_sampling.size import EFFECTIVE_SAMPLE_SIZE
from rlcourse.exercises.importance_sampling.weights import IMPORTANCE_WEIGHTS

EXERCISES = (
    IMPORTANCE_WEIGHTS,
    EFFECTIVE_SAMPLE_SIZE,
    OFF_POLICY_LOSS,
    KL_DIVERGENCE,
    KL_ESTIMATES,
)
