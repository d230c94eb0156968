"""Lesson 09: what students write about direct preference optimization, and how it goes wrong."""

from rlcourse.exercises.dpo.loss import DPO_LOSS
from rlcourse.exercises.dpo.optimum import OPTIMAL_POLICY
from rlcourse.exercises.dpo.pairs import PREFERENCE_PAIRS
from rlcourse.exercises.dpo.sequences import IMPLICIT_REWARDS, SEQUENCE_LOGPROBS

EXERCISES = (
    OPTIMAL_POLICY,
    SEQUENCE_LOGPROBS,
    IMPLICIT_REWARDS,
    PREFERENCE_PAIRS,
    DPO_LOSS,
)
