"""Grading that cannot be fooled: student code runs confined, and is judged from outside.

Untrusted (``server``, ``worker``, ``noop_*``): a process without references, files, network or
company, which runs a submission's cells and calls its functions. Trusted (``engine``, ``sandbox``,
``judging``, ``gradebook``): reads submissions, draws cases, compares what comes back over the pipe
(``protocol``) with right answers, and writes nbgrader's gradebook. All that a student sent is read
(``reading``) in processes that may be lost (``disposable``). ``isolation`` and ``syscalls``
are the walls between them; ``nbgrader_plugin`` puts the same engine under nbgrader's own autograde.
"""

from importlib import import_module

_HOMES = {"grade": "engine", "Options": "engine", "Report": "report", "Row": "report"}
__all__ = list(_HOMES)


def __getattr__(name: str):
    if name in _HOMES:
        return getattr(import_module(f"rlcourse.grading.{_HOMES[name]}"), name)
    raise AttributeError(f"module 'rlcourse.grading' has no attribute {name!r}")
