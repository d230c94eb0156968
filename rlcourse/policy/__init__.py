"""Language models as policies: loading, sampling, scoring, and one small enough to enumerate.

Everything here is imported on first use, so that ``rlcourse --help`` need not wait for torch, nor
the toy policy for transformers.
"""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rlcourse.policy.rollouts import Rollouts
    from rlcourse.policy.toy import ToyPolicy

_HOMES = {
    "Policy": "model",
    "Rollouts": "rollouts",
    "Speaker": "turns",
    "ToyPolicy": "toy",
    "sample_completions": "sampler",
}
__all__ = ["Policy", "Rollouts", "Speaker", "ToyPolicy", "sample_completions"]


def __getattr__(name: str):
    if name in _HOMES:
        return getattr(import_module(f"rlcourse.policy.{_HOMES[name]}"), name)
    raise AttributeError(f"module 'rlcourse.policy' has no attribute {name!r}")
