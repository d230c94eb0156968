"""Lesson 03: what students write about baselines, and how it goes wrong."""
