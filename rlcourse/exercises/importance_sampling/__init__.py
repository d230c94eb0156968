"""Lesson 04: what students write about importance sampling and KL, and how it goes wrong."""
