"""Reinforcement learning for language models, function by function.

``check``, ``hint`` and ``progress`` are what a lesson uses. They are imported on first use, so that
``import rlcourse`` stays fast.
"""

import sys
import warnings
from importlib import import_module
from importlib.util import find_spec
from types import ModuleType

# In a notebook without ipywidgets, transformers' imports warn in red that it is missing, for bars
# that the course does not show.
warnings.filterwarnings("ignore", message="IProgress not found")


def _load_when_asked(name: str, function: str) -> None:
    """Let `name` be imported without its code, which runs when `function` is first called."""

    def call(*args, **kwargs):
        if sys.modules.get(name) is stand_in:
            del sys.modules[name]
        return getattr(import_module(name), function)(*args, **kwargs)

    stand_in = ModuleType(name)
    setattr(stand_in, function, call)
    sys.modules[name] = stand_in


# nbformat imports jsonschema, which imports this to check international addresses. No notebook has
# one, and building its grammar takes three seconds, as long as importing torch.
if "rfc3987_syntax" not in sys.modules and find_spec("rfc3987_syntax") is not None:
    _load_when_asked("rfc3987_syntax", "is_valid_syntax")

__version__ = "0.1.0"
__all__ = ["borrow", "check", "hint", "progress", "ready"]


def __getattr__(name: str):
    if name in __all__:
        return getattr(import_module("rlcourse.student"), name)
    raise AttributeError(f"module 'rlcourse' has no attribute {name!r}")
