"""Stands in for ``rlcourse.exercises`` on the untrusted side: no exercise, no answer."""

__all__ = ["all", "get"]


def get(name: str):
    raise LookupError(f"exercise {name!r} is not here: this is a graded run")


def all() -> list:
    return []
