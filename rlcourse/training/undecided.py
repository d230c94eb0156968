"""Make the start of the capstone, once: ``python -m rlcourse.training.undecided``."""

import torch
from safetensors.torch import save_file

from rlcourse.policy import Policy
from rlcourse.policy.undecided import WEIGHTS
from rlcourse.tasks.dialects import dialect
from rlcourse.training.minimal import imitate


def main() -> None:
    """Imitate teachers who speak no dialect, and write the weights in float16."""
    torch.set_num_threads(1)
    policy = Policy.load("tiny", device="cpu")
    imitate(policy, dialect(0), steps=60)
    halves = {name: p.detach().half().contiguous() for name, p in policy.named_parameters()}
    save_file(halves, WEIGHTS)


if __name__ == "__main__":
    main()
