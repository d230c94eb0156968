"""Lesson 06: what students write about GRPO, and how it goes wrong."""

from rlcourse.exercises.grpo.advantages import GROUP_NORMALIZED_ADVANTAGES
from rlcourse.exercises.grpo.coefficient import GRPO_GRADIENT_COEFFICIENT
from rlcourse.exercises.grpo.loss import GRPO_LOSS
from rlcourse.exercises.grpo.step import GRPO_STEP

EXERCISES = (
    GROUP_NORMALIZED_ADVANTAGES,
    GRPO_LOSS,
    GRPO_GRADIENT_COEFFICIENT,
    GRPO_STEP,
)
