"""Methods that learn from batches: the loop, its objective, and what some methods add to it."""
