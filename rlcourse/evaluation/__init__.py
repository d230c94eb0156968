"""Measuring policies: accuracy, pass@k, intervals, transcripts, and whether two differ.

Everything here is imported on first use, so that ``rlcourse --help`` need not wait for torch.
"""

from rlcourse.on_first_use import on_first_use

_HOMES = {
    "Comparison": ".comparing",
    "Completion": ".scores",
    "Difference": ".comparing",
    "Evaluation": ".scores",
    "ExperimentReport": ".report_form",
    "Interval": ".scores",
    "Transcript": ".scores",
    "compare": ".comparing",
    "evaluate_policy": ".measure",
    "evaluation_table": ".tables",
    "greedy_accuracy": ".measure",
    "read_evaluation": ".directory",
    "telling": ".transcripts",
    "transcripts_table": ".measure",
}
__all__ = list(_HOMES)
__getattr__ = on_first_use(__name__, _HOMES)
