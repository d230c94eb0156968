"""Lesson 08: what students write about reward models, and how it goes wrong."""
