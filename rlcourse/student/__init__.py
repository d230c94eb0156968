"""What a lesson calls.

The functions that students use in a notebook::

    check(reinforce_loss)     compare with the reference and show the result
    hint(reinforce_loss)      a nudge, the idea, nearly the code
    progress()                what passes, over all lessons, and what is next
    ready(reinforce_loss)     True when it is written; for demo cells
    borrow(reinforce_loss)    the course's version in its place for now, without points
"""

from importlib import import_module

_HOMES = {
    "borrow": "borrowing",
    "check": "checking",
    "hint": "hints",
    "ready": "checking",
    "progress": "panel",
}
__all__ = ["borrow", "check", "hint", "progress", "ready"]


def __getattr__(name: str):
    if name not in _HOMES:
        raise AttributeError(f"module 'rlcourse.student' has no attribute {name!r}")
    return getattr(import_module(f"rlcourse.student.{_HOMES[name]}"), name)
