"""Lesson 01: sampling, scoring and grading completions, and how each of them goes wrong."""
