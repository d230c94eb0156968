"""Lesson 00: one function, to see how a check reads."""
