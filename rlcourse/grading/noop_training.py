"""What ``rlcourse.training`` is on the untrusted side: names that can be imported, and no trainer.

Lessons import the trainer for their demos, which a graded run passes over. A cell of a student's
own that trains ends at once, with a reason, where it would have run into the time limit.
"""


def __getattr__(name: str):
    if name.startswith("__"):
        raise AttributeError(name)

    def absent(*args, **kwargs):
        raise RuntimeError(f"{name} is not here: nothing is trained while a submission is graded")

    return absent
