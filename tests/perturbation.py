"""What ``--perturbed=SEED`` changes, so that no test holds on one machine's rounding alone.

The embedded model gets relative noise of 1e-6, some ten times the rounding of float32. Every seed
of torch and of the package is shifted: the small models of the tests are drawn anew, and so is
every problem, order, batch and completion. Within one run the same seed still draws the same, here
and in the processes that tests start.
"""

import os
import random

import torch

VARIABLE = "RLCOURSE_TESTS_PERTURBED"  # for the processes that tests start
NOISE = 1e-6


def install(shift: int) -> None:
    """Perturb what this process loads and draws from now on."""

    class Generator(torch.Generator):
        def manual_seed(self, seed):
            return super().manual_seed(seed + shift)

        def initial_seed(self):
            return super().initial_seed() - shift

    class Random(random.Random):
        def __init__(self, seed=None):  # the package's own seeds are texts that name a purpose
            super().__init__(f"{shift}/{seed}" if isinstance(seed, str) else seed)

    plain_manual_seed = torch.manual_seed
    torch.manual_seed = lambda seed: plain_manual_seed(seed + shift)
    torch.Generator, random.Random = Generator, Random
    _perturb_the_embedded_model()


def _perturb_the_embedded_model() -> None:
    from rlcourse.policy import model as policy_model

    load = policy_model.load_model_and_tokenizer

    def load_perturbed(name, *options):
        model, tokenizer = load(name, *options)
        if name == "tiny":
            generator = torch.Generator().manual_seed(0)
            with torch.no_grad():
                for weight in model.parameters():
                    noise = torch.randn(weight.shape, generator=generator)
                    weight.mul_(1 + NOISE * noise.to(weight))
        return model, tokenizer

    policy_model.load_model_and_tokenizer = load_perturbed


if VARIABLE in os.environ:
    install(1_000_003 * int(os.environ[VARIABLE]))
