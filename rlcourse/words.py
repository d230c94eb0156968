"""Numbers in sentences."""


def counted(number: float, noun: str) -> str:
    """ "1 point", "2 points"."""
    return f"{number:g} {noun}" + ("" if number == 1 else "s")


def points_of(earned: float, possible: float) -> str:
    """ "0.21 of 3 points"."""
    return f"{round(earned, 2):g} of {counted(possible, 'point')}"
