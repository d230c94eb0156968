"""Measuring policies: accuracy, pass@k, intervals, transcripts, and whether two differ."""

from rlcourse.evaluation.comparing import Comparison, Difference, compare
from rlcourse.evaluation.directory import read_evaluation
from rlcourse.evaluation.measure import evaluate_policy, greedy_accuracy, transcripts_table
from rlcourse.evaluation.results import Completion, Evaluation, Interval, Transcript
from rlcourse.evaluation.tables import evaluation_table
from rlcourse.evaluation.transcripts import telling

__all__ = [
    "Comparison",
    "Completion",
    "Difference",
    "Evaluation",
    "Interval",
    "Transcript",
    "compare",
    "evaluate_policy",
    "evaluation_table",
    "greedy_accuracy",
    "read_evaluation",
    "telling",
    "transcripts_table",
]
