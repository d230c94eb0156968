"""Lesson 03: what students write about baselines, and how it goes wrong."""

from rlcourse.exercises.baselines.advantages import GROUP_MEAN_ADVANTAGES
from rlcourse.exercises.baselines.free import EXPECTED_SCORE
from rlcourse.exercises.baselines.leave_one_out import LEAVE_ONE_OUT_ADVANTAGES
from rlcourse.exercises.baselines.variance import GRADIENT_VARIANCE, OPTIMAL_BASELINE

EXERCISES = (
    EXPECTED_SCORE,
    GROUP_MEAN_ADVANTAGES,
    LEAVE_ONE_OUT_ADVANTAGES,
    GRADIENT_VARIANCE,
    OPTIMAL_BASELINE,
)
