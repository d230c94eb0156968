"""Lesson 01: sampling, scoring and grading completions, and how each of them goes wrong."""

from rlcourse.exercises.policies.averages import MASKED_MEAN, SFT_LOSS
from rlcourse.exercises.policies.correctness import CORRECTNESS_REWARD
from rlcourse.exercises.policies.extraction import EXTRACT_ANSWER
from rlcourse.exercises.policies.form import FORMAT_REWARD
from rlcourse.exercises.policies.masks import COMPLETION_MASK
from rlcourse.exercises.policies.returns import RETURNS_TO_GO
from rlcourse.exercises.policies.sampling import SAMPLE_TOKENS
from rlcourse.exercises.policies.scoring import TOKEN_ENTROPY, TOKEN_LOGPROBS

EXERCISES = (
    SAMPLE_TOKENS,
    COMPLETION_MASK,
    TOKEN_LOGPROBS,
    TOKEN_ENTROPY,
    MASKED_MEAN,
    SFT_LOSS,
    EXTRACT_ANSWER,
    CORRECTNESS_REWARD,
    FORMAT_REWARD,
    RETURNS_TO_GO,
)
