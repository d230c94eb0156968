"""A course for rlcourse; course.toml says what it contains."""
