"""Language models as policies: loading, sampling, scoring, and one small enough to enumerate.

Everything here is imported on first use, so that ``rlcourse --help`` need not wait for torch, nor
the toy policy for transformers.
"""

from typing import TYPE_CHECKING

from rlcourse.on_first_use import on_first_use

if TYPE_CHECKING:
    from rlcourse.policy.rollouts import Rollouts
    from rlcourse.policy.toy import ToyPolicy

_HOMES = {
    "Policy": ".model",
    "Rollouts": ".rollouts",
    "Speaker": ".turns",
    "ToyPolicy": ".toy",
    "sample_completions": ".sampler",
}
__all__ = ["Policy", "Rollouts", "Speaker", "ToyPolicy", "sample_completions"]
__getattr__ = on_first_use(__name__, _HOMES)
