"""Reinforcement learning for language models, function by function.

``check``, ``hint`` and ``progress`` are what a lesson uses. They are imported on first use, so that
``import rlcourse`` stays fast.
"""

import warnings
from importlib import import_module

# In a notebook without ipywidgets, transformers' imports warn in red that it is missing, for bars
# that the course does not show.
warnings.filterwarnings("ignore", message="IProgress not found")

__version__ = "0.1.0"
__all__ = ["borrow", "check", "hint", "progress", "ready"]


def __getattr__(name: str):
    if name in __all__:
        return getattr(import_module("rlcourse.student"), name)
    raise AttributeError(f"module 'rlcourse' has no attribute {name!r}")
