"""Where points go: nbgrader's gradebook, due dates, platforms' tables, signed completion files."""
