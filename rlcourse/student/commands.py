"""``rlcourse progress``."""


def progress() -> None:
    """Show what you have done, over all lessons, and what is next."""
    from rlcourse import progress

    print(progress())
