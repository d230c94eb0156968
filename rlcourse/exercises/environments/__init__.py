"""Lesson 14: what students write about episodes, tools and teachers, and how it goes wrong."""
