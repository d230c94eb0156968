"""The code that runs on the other side of the walls, within reach of student code."""
