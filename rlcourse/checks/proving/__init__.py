"""Proof that the checks say what they claim."""
