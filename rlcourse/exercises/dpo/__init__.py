"""Lesson 09: what students write about direct preference optimization, and how it goes wrong."""
