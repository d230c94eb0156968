"""Lesson 07: the knobs of GRPO, and the ways to turn them wrongly."""
