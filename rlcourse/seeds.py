"""Seeds for everything that is drawn, as functions of one seed and the purpose.

So the draws of step 57 do not depend on how a run got there, and no random states have to be
stored.
"""

import random

import torch


def derived_seed(seed: int, *purpose) -> int:
    """A seed of 63 bits for one purpose, such as ``derived_seed(0, "step", 57)``."""
    return random.Random(f"{seed}/{'/'.join(map(str, purpose))}").getrandbits(63)


def derived_generator(device: torch.device, seed: int, *purpose) -> torch.Generator:
    """A generator on `device`, seeded for one purpose."""
    return torch.Generator(device).manual_seed(derived_seed(seed, *purpose))
