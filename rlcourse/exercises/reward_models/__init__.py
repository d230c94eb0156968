"""Lesson 08: what students write about reward models, and how it goes wrong."""

from rlcourse.exercises.reward_models.hacking import HACKING_COMPLETIONS
from rlcourse.exercises.reward_models.head import LAST_TOKEN_INDEX, REWARD_ACCURACY
from rlcourse.exercises.reward_models.preferences import (
    BRADLEY_TERRY_LOSS,
    PREFERENCE_PROBABILITY,
)
from rlcourse.exercises.reward_models.robust import ROBUST_REWARD

EXERCISES = (
    PREFERENCE_PROBABILITY,
    BRADLEY_TERRY_LOSS,
    LAST_TOKEN_INDEX,
    REWARD_ACCURACY,
    HACKING_COMPLETIONS,
    ROBUST_REWARD,
)
