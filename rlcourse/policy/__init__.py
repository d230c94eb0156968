"""Language models as policies: loading, sampling, scoring, and one small enough to enumerate."""

from rlcourse.policy.model import Policy
from rlcourse.policy.rollouts import Rollouts
from rlcourse.policy.sampler import sample_completions
from rlcourse.policy.toy import ToyPolicy

__all__ = ["Policy", "Rollouts", "ToyPolicy", "sample_completions"]
