"""What is said of an answer, and how it is shown."""
