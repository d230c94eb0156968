"""Whether an answer is right, which mistake it is, and what it earns."""
