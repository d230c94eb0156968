"""What a step learns from: questions of the step, completions, their rewards."""
