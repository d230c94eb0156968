"""Lessons become notebooks, and notebooks are run: what ``rlcourse build`` and ``check`` need.

Imported on first use: nbgrader alone takes seconds.
"""

from importlib import import_module

_HOMES = {
    "build": "builder",
    "Built": "builder",
    "check_notebook": "runner",
    "Report": "runner",
    "Row": "runner",
    "blank_functions": "stubs",
    "solution": "stubs",
    "stub": "stubs",
    "write_sample_submission": "sample",
}
__all__ = sorted(_HOMES)


def __getattr__(name: str):
    if name in _HOMES:
        return getattr(import_module(f"rlcourse.authoring.{_HOMES[name]}"), name)
    raise AttributeError(f"module 'rlcourse.authoring' has no attribute {name!r}")
