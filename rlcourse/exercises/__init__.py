"""Exercises: what students write, and how an answer is checked and its mistake named.

    check(reinforce_loss)     compare with the reference; the result shows itself
    hint(reinforce_loss)      one more hint with every call
    progress()                what passes, over all lessons
    ready(reinforce_loss)     True when it is written; for demo cells

``get(name)`` and ``all()`` give the declarations. Imports are lazy: the student's side
(``calling``, ``specs``) loads without the references.
"""

from importlib import import_module

_HOMES = {
    "check": ("checking", "check"),
    "hint": ("checking", "hint"),
    "ready": ("checking", "ready"),
    "progress": ("record", "progress"),
    "get": ("registry", "get"),
    "all": ("registry", "every"),
}
__all__ = list(_HOMES)


def __getattr__(name: str):
    if name not in _HOMES:
        raise AttributeError(f"module 'rlcourse.exercises' has no attribute {name!r}")
    module, attribute = _HOMES[name]
    return getattr(import_module(f"rlcourse.exercises.{module}"), attribute)
