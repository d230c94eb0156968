"""A tool that reads what a policy wrote, and runs none of it."""

import operator
import re
from collections.abc import Iterator

from rlcourse.checks.declaring import Case, CaseSampler, Sketch


def cases(draw: CaseSampler) -> Iterator[Case]:
    a, b, c = draw.integer(11, 49), draw.integer(51, 99), draw.integer(3, 9)
    texts = {
        "worked: a product": "12 * 3",
        "a sum": f"{a} + {b}",
        "a difference": f"{b} - {a}",
        "a difference below zero": f"{a} - {b}",
        "a product of larger numbers": f"{b * a} * {b}",
        "a division": f"{b * c} / {c}",
        "another division": f"{a * b} / {a}",
        "a division with a remainder": f"{b * c + 1} / {c}",
        "one more with a remainder": f"{a} / {a + 1}",
        "a half left over": f"{2 * a + 1} / 2",
        "a division by zero": f"{a} / 0",
        "zero divided by a number": f"0 / {b}",
        "no spaces": f"{a}+{b}",
        "no spaces in a division": f"{b * c}/{c}",
        "a space on one side": f"{b} -{a}",
        "spaces all around": f"   {b}   -  {a} ",
        "a space before": f" {c} + {a}",
        "a space after": f"{c} * {a} ",
        "two spaces around the operator": f"{b}  *  {c}",
        "leading zeros": f"00{a} * 0{c}",
        "the result is there already": f"{a} + {b} = {a + b}",
        "an equals sign": f"{a} * {c} =",
        "words before": f"I compute {a} + {b}",
        "words after": f"{a} + {b} apples",
        "two calls": f"{a} + {b}\n{b} - {a}",
        "a line break at the end": f"{a} + {c}\n",
        "two operators": f"{a} + {b} * {c}",
        "parentheses": f"({a} + {b})",
        "a power": f"{c} ** 2",
        "a floor division": f"{b} // {c}",
        "a sign": f"-{a} + {b}",
        "a sign on the right": f"{a} * -{c}",
        "a fraction": f"{a}.5 + {b}",
        "a point between the numbers": f"{a}.{b}",
        "a comma between the numbers": f"{a}, {b}",
        "an expression that is code": "__import__('os').getcwd()",
        "a point, and no remainder": f"{b * c}.{c}",
        "a comma, and no remainder": f"{b * c},{c}",
        "a space within a number": f"1 {a} + {b}",
        "a space within the other number": f"{b} * {a} 1",
        "a space within a product's sign": f"{c} * * 2",
        "an underscore within a number": f"1_{a} + {b}",
        "tabs around the sign": f"{a}\t+\t{b}",
        "a line break before the number": f"{a} *\n{b}",
        "a space that does not break": f"{a}\u00a0- {b}",
        "a plus sign on the right": f"{a} + +{b}",
        "a letter among the digits": f"{a}e1 * {b}",
        "a number alone": f"{a}",
        "an empty text": "",
        "spaces alone": "  ",
        "an answer": f"#### {a}",
        "nine digits": f"{b}1234567 + {a}7654321",
        "ten digits": f"{b}12345678 + {a}",
        "ten digits on the right": f"{a} * {b}12345678",
        "thirteen digits": f"{b}12345678901 + {a}",
        "thirteen digits on the right": f"{a} - {b}12345678901",
        "digits of another script": "٣ + ٤",
        "a superscript": "3² + 4",
    }
    for label, text in texts.items():
        yield Case(label, {"text": text})


NAMES = {"+": "add", "-": "sub", "*": "mul"}


def line_by_line(text):
    number = r"([0-9]{1,9})"
    call = re.fullmatch(rf" *{number} *([-+*/]) *{number} *", text)
    answer = "?"
    if call:
        a, sign, b = int(call[1]), call[2], int(call[3])
        if sign != "/":
            answer = str({"+": a + b, "-": a - b, "*": a * b}[sign])
        elif b != 0 and a % b == 0:
            answer = str(a // b)
    return answer


def _by_int(text):
    for sign in "+-*/":
        left, found, right = text.partition(sign)
        if found:
            try:
                a, b = int(left), int(right)
                return str(a // b if sign == "/" else getattr(operator, NAMES[sign])(a, b))
            except (ValueError, ZeroDivisionError):
                return "?"
    return "?"


def _divides_the_rest(text):
    """What is no +, - or * must be a division: where the range lets it in, so is a point."""
    call = re.fullmatch(r" *([0-9]{1,9}) *([+-/*]) *([0-9]{1,9}) *", text)
    if not call:
        return "?"
    a, sign, b = int(call[1]), call[2], int(call[3])
    if sign in NAMES:
        return str(getattr(operator, NAMES[sign])(a, b))
    return str(a // b) if b and a % b == 0 else "?"


def _evaluated(text, shown=str):
    try:
        return shown(eval(text))
    except Exception:
        return "?"


def _whole(value):
    return str(int(value)) if value == int(value) else "?"


def by_hand(text):
    """Without a regular expression."""
    for sign, work in (("+", operator.add), ("-", operator.sub), ("*", operator.mul)):
        left, found, right = text.partition(sign)
        if found:
            a, b = _number(left), _number(right)
            return "?" if a is None or b is None else str(work(a, b))
    left, _, right = text.partition("/")
    a, b = _number(left), _number(right)
    return str(a // b) if a is not None and b and a % b == 0 else "?"


def _number(text):
    digits = text.strip(" ")
    plain = digits.isascii() and digits.isdigit() and len(digits) <= 9
    return int(digits) if plain else None


def with_decimals_of_any_script(text):
    """`isdecimal` knows the digits of all scripts, and `int` reads them."""
    for sign in "+-*/":
        left, found, right = (part.strip(" ") for part in text.partition(sign))
        if found and all(n.isdecimal() and len(n) <= 9 for n in (left, right)):
            return line_by_line(f"{int(left)}{sign}{int(right)}")
    return "?"


def to_the_end_of_the_line(text):
    """`$` matches before a line break that ends the text."""
    call = re.match(r" *([0-9]{1,9} *[-+*/] *[0-9]{1,9}) *$", text)
    return line_by_line(call[1]) if call else "?"


def with_parts_stripped(text):
    """`strip` takes off more than spaces."""
    for sign in "+-*/":
        left, found, right = (part.strip() for part in text.partition(sign))
        if found and all(re.fullmatch("[0-9]{1,9}", n) for n in (left, right)):
            return line_by_line(f"{left}{sign}{right}")
    return "?"


sketch = Sketch(line_by_line)
alternatives = (by_hand,)
