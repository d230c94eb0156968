"""Lesson 13: pass@k as a curve, a reward without truth, who gets the gradient, entropy's price."""
