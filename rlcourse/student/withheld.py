"""What this copy of the course lacks: nothing. ``rlcourse student-edition`` writes another text."""

LESSONS: tuple[str, ...] = ()  # whose right answers are not here
PACKED: dict[str, tuple[str, str]] = {}  # name: (module, text) of functions that the library runs
