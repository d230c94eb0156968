"""Lessons become notebooks, and notebooks are run: what ``rlcourse build`` and ``check`` need."""
