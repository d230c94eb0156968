"""Measuring a policy: accuracy, pass@k, intervals, transcripts."""

from rlcourse.evaluation.measure import evaluate_policy, greedy_accuracy
from rlcourse.evaluation.results import Completion, Evaluation, Interval, Transcript
from rlcourse.evaluation.transcripts import telling, transcripts_table

__all__ = [
    "Completion",
    "Evaluation",
    "Interval",
    "Transcript",
    "evaluate_policy",
    "greedy_accuracy",
    "telling",
    "transcripts_table",
]
