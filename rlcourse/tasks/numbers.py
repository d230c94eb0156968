r"""Numbers as people and models write them: read exactly, or not at all.

"1,234.50", "$5", "1e5", "3 1/2" and "\boxed{\frac{1}{2}}" are numbers. "3,5", "10:30", "1 234"
and "1'234" are not: their meaning depends on who wrote them, and a part would be another number.
"""

import logging
import re
from fractions import Fraction

# Digits with whatever is written into them; a minus after a digit, a letter or a bracket subtracts.
NUMBER = (
    r"(?:[0-9]+ +[0-9]+/[0-9]+|[0-9]{1,3}(?:[ \u00a0\u2009\u202f][0-9]{3})+(?![0-9])"
    r"|(?:[0-9]|\.[0-9])(?:[0-9]|[,.:/_'’](?=[0-9])|[eE][-+]?[0-9])*)"
)
_SIGNED = re.compile(r"(?:(?<![\w)\]])[-−])?\$?" + NUMBER)
_PLAIN = re.compile(
    r"(?:(?P<mixed>[0-9]+) +(?=[0-9]+/))?"
    r"(?P<digits>(?:[0-9]{1,3}(?:,[0-9]{3})+|[0-9]+)(?:\.[0-9]+)?|\.[0-9]+)"
    r"(?:[eE](?P<power>[-+]?[0-9]{1,3}))?(?:/(?P<below>[0-9]+))?"
)
# LaTeX that is put around a number or into it, and changes nothing.
_ORNAMENTS = re.compile(
    r"\\(?:text|textbf|mathrm|mathbf|mbox)\b|\\[$%,;!]|\\ |\^\{?\\circ\}?|[{}~]"
)

LONGEST = 60  # characters of a box that is computed
_TOWER = re.compile(r"!|\^.*\^|\^\{?[-+]?[0-9]{3}")  # numbers that would take for ever to write out


def exact_number(text: str) -> str | None:
    """The canonical spelling of a text that is one number and nothing else, or None.

    A sign, ``$``, ``%`` and a final stop may stand around it. "1e5" → "100000", "1/2" → "0.5".
    """
    bare = re.fullmatch(r"\s*([-−+]?)\s*\$?\s*([-−]?)\s*(.*?)\s*%?\.?\s*", text, flags=re.DOTALL)
    number = _PLAIN.fullmatch(bare.group(3)) if bare else None
    if bare is None or number is None or (number["below"] and not int(number["below"])):
        return None
    value = Fraction(number["digits"].replace(",", "")) * Fraction(10) ** int(number["power"] or 0)
    value = int(number["mixed"] or 0) + value / int(number["below"] or 1)
    return canonical(-value if bare.group(1) in ("-", "−") or bare.group(2) else value)


def canonical(value: Fraction) -> str | None:
    """``Fraction(7, 2)`` → "3.5"; None where decimals never end."""
    rest, places = value.denominator, 0
    while rest % 10 == 0 or rest % 2 == 0 or rest % 5 == 0:
        rest, places = rest // (10 if rest % 10 == 0 else 2 if rest % 2 == 0 else 5), places + 1
    if rest != 1:
        return None
    whole, part = divmod(abs(value.numerator) * 10**places // value.denominator, 10**places)
    digits = f"{part:0{places}}".rstrip("0") if places else ""
    return "-" * (value < 0) + f"{whole}" + f".{digits}" * bool(digits)


def numbers_in(text: str) -> list[str]:
    """Every number of a text as it stands there: "$3,720 of 10" → ["$3,720", "10"]."""
    return _SIGNED.findall(text)


def boxed_number(text: str) -> tuple[bool, str | None]:
    r"""Whether the last ``\boxed{…}`` of a text has a digit, and the number that it holds.

    Words and units beside the number do not matter. What LaTeX computes, such as ``\frac{1}{2}``,
    is read by math-verify, which is imported only then; without it, such a box has no number.
    """
    _, mark, tail = text.rpartition(r"\boxed{")
    inside = _to_closing_brace(tail) if mark else ""
    if not re.search("[0-9]", inside):
        return False, None
    plain = _ORNAMENTS.sub(" ", inside.replace("{,}", ",").replace("\\$", "$"))
    found = numbers_in(plain)
    if "\\" not in plain and "^" not in plain:
        return True, exact_number(found[0]) if len(found) == 1 else None
    return True, _computed(inside)


def final_number(text: str) -> str | None:
    """The number of a text's last box, or its last number; None if that cannot be read exactly."""
    boxed, number = boxed_number(text)
    found = numbers_in(text.replace("{,}", ",").replace("\\$", "$"))
    return number if boxed or not found else exact_number(found[-1])


def _to_closing_brace(text: str) -> str:
    depth = 1
    for place, letter in enumerate(text):
        depth += (letter == "{") - (letter == "}")
        if not depth:
            return text[:place]
    return text


def _computed(latex: str) -> str | None:
    try:
        from math_verify import LatexExtractionConfig, parse
        from sympy import Expr, Rational
    except ImportError:
        return None
    if len(latex) > LONGEST or _TOWER.search(latex):
        return None
    logging.getLogger("math_verify.parser").setLevel(logging.ERROR)  # it warns of no time limit
    how = [LatexExtractionConfig(boxed_match_priority=0)]
    read = parse(
        f"\\boxed{{{latex}}}", how, parsing_timeout=None
    )  # its limit needs the main thread
    value = read[0].doit() if read and isinstance(read[0], Expr) else None
    if value is None or not value.is_number or len(str(value)) > LONGEST:
        return None
    if value.is_Float:
        return exact_number(str(Rational(str(value))))
    return exact_number(f"{value.p}/{value.q}") if isinstance(value, Rational) else None
