"""Lesson 07: the knobs of GRPO, and the ways to turn them wrongly."""

from rlcourse.exercises.beyond_grpo.averages import AGGREGATE
from rlcourse.exercises.beyond_grpo.dapo import DAPO_LOSS
from rlcourse.exercises.beyond_grpo.dr_grpo import DR_GRPO_LOSS
from rlcourse.exercises.beyond_grpo.groups import INFORMATIVE_GROUPS, SIGN_ADVANTAGES
from rlcourse.exercises.beyond_grpo.lengths import OVERLONG_PENALTY
from rlcourse.exercises.beyond_grpo.sequences import SEQUENCE_LEVEL_LOSS
from rlcourse.exercises.beyond_grpo.targets import TARGET_LOGPROBS

EXERCISES = (
    AGGREGATE,
    DR_GRPO_LOSS,
    DAPO_LOSS,
    INFORMATIVE_GROUPS,
    OVERLONG_PENALTY,
    SEQUENCE_LEVEL_LOSS,
    SIGN_ADVANTAGES,
    TARGET_LOGPROBS,
)
