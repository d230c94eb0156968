"""Methods that learn from pairs of completions."""
