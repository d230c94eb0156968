"""What the module of an exercise is written with, in one place."""

from rlcourse.checks.asking.case import Case
from rlcourse.checks.asking.specs import Spec
from rlcourse.checks.judging.case_sampler import CaseSampler, mask_of, tensor
from rlcourse.checks.judging.sketch import Sketch

__all__ = ["Case", "CaseSampler", "Sketch", "Spec", "mask_of", "tensor"]
