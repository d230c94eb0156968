"""Recipes: what decides a run. One class of settings per algorithm, and files of their values."""
