"""Stands in for ``rlcourse.training`` on the untrusted side: names to import, and no trainer.

Lessons import the trainer for their demos, which a graded run skips. A student's own cell that
trains ends at once, with a reason, instead of running into the time limit.
"""


def __getattr__(name: str):
    if name.startswith("__"):
        raise AttributeError(name)

    def absent(*args, **kwargs):
        raise RuntimeError(f"{name} is not here: nothing is trained while a submission is graded")

    return absent
