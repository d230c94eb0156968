"""The GPU of this machine, in the place of the pretended one: see conftest.py in on_device/.

It cannot count what the host waits for or asks for, and hands memory out in blocks too large for
the small models of the tests; tests that need either are left out.
"""

import types
from contextlib import contextmanager

import torch

SAME_DRAWS = False  # as the CPU: its generator is another
ROUNDING = 1e-3  # by which it may differ from the CPU in float32, where much cancels


def install() -> None:
    """Make sure that there is one."""
    assert torch.cuda.is_available(), "RLCOURSE_REAL_GPU is set, and PyTorch sees no GPU"


@contextmanager
def counted():
    """The most bytes that were allocated inside of the block."""
    torch.cuda.reset_peak_memory_stats()
    found = types.SimpleNamespace()
    yield found
    found.peak = torch.cuda.max_memory_allocated()


def allocated() -> int:
    """Bytes in use."""
    return torch.cuda.memory_allocated()
