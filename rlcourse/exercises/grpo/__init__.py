"""Lesson 06: what students write about GRPO, and how it goes wrong."""
