"""Lesson 12: what students write about three policies, and how it goes wrong."""
