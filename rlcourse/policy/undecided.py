"""The start of the capstone: the embedded model, undecided between doing as told and adding.

Its weights come with the package: ``rlcourse.training.minimal.imitate`` made them, from the
demonstrations of ``tasks.dialects.dialect(0)``, in 60 steps on one thread.
"""

from pathlib import Path
from typing import TYPE_CHECKING

import torch
from safetensors.torch import load_file

if TYPE_CHECKING:
    from rlcourse.policy.model import Policy

WEIGHTS = Path(__file__).parent / "tiny" / "undecided.safetensors"


def undecided() -> "Policy":
    """A fresh copy, on the CPU and in float32."""
    from rlcourse.policy.model import (
        Policy,
    )  # brings transformers, which a check of code is without

    policy, weights = Policy.load("tiny", device="cpu"), load_file(WEIGHTS)
    with torch.no_grad():
        for name, parameter in policy.named_parameters():
            parameter.copy_(weights[name])
    return policy
