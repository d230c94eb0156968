"""Stands in for ``rlcourse.student`` on the untrusted side: no check, no answer.

Lessons and students call these functions in their own cells. In a graded run they do nothing: the
grader checks on the other side of the pipe, and demos are not wanted.
"""

__all__ = ["borrow", "check", "hint", "progress", "ready"]

showing = False  # a submission may lean on a name that such a cell defines


class Silence:
    """Stands for a check's result: not passed, no points."""

    passed, score, points, mistake, message = False, 0.0, 0.0, None, ""

    def __repr__(self) -> str:
        return ""


def check(*args, **kwargs) -> Silence:
    return Silence()


hint = borrow = progress = check


def ready(*functions) -> bool:
    """Cells that show off finished functions are skipped, unless the grader asks for them."""
    return showing and not any(map(_is_stub, functions))


def _is_stub(function) -> bool:
    code = getattr(function, "__code__", None)
    return code is None or "NotImplementedError" in code.co_names
