"""Measuring policies: accuracy, pass@k, intervals, transcripts, and whether two differ.

Everything here is imported on first use, so that ``rlcourse --help`` need not wait for torch.
"""

from importlib import import_module

_HOMES = {
    "Comparison": "comparing",
    "Completion": "scores",
    "Difference": "comparing",
    "Evaluation": "scores",
    "ExperimentReport": "report_form",
    "Interval": "scores",
    "Transcript": "scores",
    "compare": "comparing",
    "evaluate_policy": "measure",
    "evaluation_table": "tables",
    "greedy_accuracy": "measure",
    "read_evaluation": "directory",
    "telling": "transcripts",
    "transcripts_table": "measure",
}
__all__ = list(_HOMES)


def __getattr__(name: str):
    if name in _HOMES:
        return getattr(import_module(f"rlcourse.evaluation.{_HOMES[name]}"), name)
    raise AttributeError(f"module 'rlcourse.evaluation' has no attribute {name!r}")
