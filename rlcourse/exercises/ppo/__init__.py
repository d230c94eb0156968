"""Lesson 05: what students write about TRPO, PPO and critics, and how it goes wrong."""

from rlcourse.exercises.ppo.clip import PPO_CLIP_LOSS
from rlcourse.exercises.ppo.conjugate import CONJUGATE_GRADIENT
from rlcourse.exercises.ppo.critic import VALUE_LOSS
from rlcourse.exercises.ppo.estimator import GAE
from rlcourse.exercises.ppo.fisher import FISHER_VECTOR_PRODUCT
from rlcourse.exercises.ppo.line_search import BACKTRACKING_LINE_SEARCH
from rlcourse.exercises.ppo.shaping import KL_SHAPED_REWARDS
from rlcourse.exercises.ppo.whitening import WHITEN

EXERCISES = (
    FISHER_VECTOR_PRODUCT,
    CONJUGATE_GRADIENT,
    BACKTRACKING_LINE_SEARCH,
    PPO_CLIP_LOSS,
    GAE,
    VALUE_LOSS,
    KL_SHAPED_REWARDS,
    WHITEN,
)
