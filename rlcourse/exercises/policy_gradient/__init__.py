"""Lesson 02: what students write about the policy gradient, and how it goes wrong."""
