"""A run's directory, its checkpoints, and what it produced."""
