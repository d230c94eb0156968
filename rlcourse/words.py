"""Numbers in sentences."""


def counted(number: float, noun: str) -> str:
    """ "1 point", "2 points"."""
    return f"{number:g} {noun}" + ("" if number == 1 else "s")


def amount(points: float) -> str:
    """ "0.21", "3": at most two decimals, which is what people read."""
    return f"{round(points, 2):g}"


def points_of(earned: float, possible: float) -> str:
    """ "0.21 of 3 points"."""
    return f"{amount(earned)} of {counted(possible, 'point')}"
