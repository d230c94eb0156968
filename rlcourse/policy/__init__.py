"""Language models as policies: loading, sampling, scoring, and one small enough to enumerate.

``Policy`` and ``sample_completions`` are imported on first use: they bring transformers, which
takes seconds, and the toy policy does not need it.
"""

from importlib import import_module

from rlcourse.policy.rollouts import Rollouts
from rlcourse.policy.toy import ToyPolicy

__all__ = ["Policy", "Rollouts", "Speaker", "ToyPolicy", "sample_completions"]

_LATER = {
    "Policy": "rlcourse.policy.model",
    "Speaker": "rlcourse.policy.turns",
    "sample_completions": "rlcourse.policy.sampler",
}


def __getattr__(name: str):
    if name in _LATER:
        return getattr(import_module(_LATER[name]), name)
    raise AttributeError(f"module 'rlcourse.policy' has no attribute {name!r}")
