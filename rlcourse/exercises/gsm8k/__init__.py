"""Lesson 11: reading answers and measuring a policy, and the numbers that mislead."""
