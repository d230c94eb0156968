"""Lesson 05: what students write about TRPO, PPO and critics, and how it goes wrong."""
