"""Lesson 11: reading answers and measuring a policy, and the numbers that mislead."""

from rlcourse.exercises.gsm8k.attempts import PASS_AT_K
from rlcourse.exercises.gsm8k.intervals import BOOTSTRAP_INTERVAL
from rlcourse.exercises.gsm8k.tags import EXTRACT_TAGGED_ANSWER
from rlcourse.exercises.gsm8k.votes import MAJORITY_VOTE

EXERCISES = (EXTRACT_TAGGED_ANSWER, PASS_AT_K, MAJORITY_VOTE, BOOTSTRAP_INTERVAL)
