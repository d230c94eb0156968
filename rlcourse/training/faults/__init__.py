"""Mistakes of real training code that can be switched on, for lesson 10."""
