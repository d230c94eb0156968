"""Lesson 10: probes and diagnoses."""
