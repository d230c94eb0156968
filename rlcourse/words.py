"""Numbers in sentences."""


def counted(number: float, noun: str) -> str:
    """ "1 point", "2 points"."""
    return f"{number:g} {noun}" + ("" if number == 1 else "s")
