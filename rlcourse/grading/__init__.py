"""Grading that cannot be fooled: student code runs confined, and is judged from outside.

Untrusted (``server``, ``worker``, ``noop_*``): a process without references, files, network or
company, which runs a submission's cells and calls its functions. Trusted (``engine``, ``sandbox``,
``judging``, ``paper``, ``gradebook``): reads submissions, draws cases, compares what comes back
over the pipe (``protocol``) with right answers, and writes nbgrader's gradebook. All that a student
sent is read (``reading``) in processes that may be lost (``disposable``). ``isolation`` and
``syscalls`` are the walls between them, ``visible`` lists what can be read inside them;
``nbgrader_plugin`` puts the same engine under nbgrader's own autograde.

What isolation cannot prove: values and gradients are compared with right ones that the answering
process never sees, and whether a function gives the same twice is seen from outside, as it is asked
the same again. But that no gradient reaches a constant, and that no argument was changed, only that
process can see, and student code owns it. It is not told which arguments count as constant: it is
asked for the gradient of every one, and has to know which of them are 0, which is what the exercise
teaches. Whoever knows, and lies for want of a ``detach``, gains at most a fifth of that exercise's
points, since a function whose numbers are all right has the other four.
"""

from importlib import import_module

_HOMES = {"grade": "engine", "Options": "engine", "Report": "report", "Row": "report"}
__all__ = list(_HOMES)


def __getattr__(name: str):
    if name in _HOMES:
        return getattr(import_module(f"rlcourse.grading.{_HOMES[name]}"), name)
    raise AttributeError(f"module 'rlcourse.grading' has no attribute {name!r}")
