"""A tool that reads what a policy wrote, and runs none of it."""

import operator
import re
from collections.abc import Iterator

from rlcourse.algorithms.environments import calculator
from rlcourse.checks.calling import Case
from rlcourse.checks.cases import CaseSampler
from rlcourse.checks.exercise import Exercise, Mistake
from rlcourse.checks.sketch import Sketch


def _cases(draw: CaseSampler) -> Iterator[Case]:
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
        "a number alone": f"{a}",
        "an empty text": "",
        "spaces alone": "  ",
        "an answer": f"#### {a}",
        "nine digits": f"{b}1234567 + {a}7654321",
        "ten digits": f"{b}12345678 + {a}",
        "ten digits on the right": f"{a} * {b}12345678",
        "digits of another script": "٣ + ٤",
        "a superscript": "3² + 4",
    }
    for label, text in texts.items():
        yield Case(label, {"text": text})


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


def _evaluated(text):
    try:
        return str(eval(text, {"__builtins__": {}}))
    except Exception:
        return "?"


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


def by_names(text):
    found = re.match(r"^ *(?P<a>[0-9]{1,9}) *(?P<op>[+*/-]) *(?P<b>[0-9]{1,9}) *\Z", text)
    if not found:
        return "?"
    a, b = int(found["a"]), int(found["b"])
    match found["op"]:
        case "+":
            return f"{a + b}"
        case "-":
            return f"{a - b}"
        case "*":
            return f"{a * b}"
    quotient, rest = divmod(a, b) if b else (0, 1)
    return "?" if rest else f"{quotient}"


_edit = Sketch(line_by_line).edit
_CALL = 'rf" *{number} *([-+*/]) *{number} *"'
_SPLIT = 'rf"\\s*{number}\\s+([-+*/])\\s+{number}\\s*"'
_WHOLE = "b != 0 and a % b == 0"


EXERCISE = Exercise(
    reference=calculator,
    lesson="14_environments",
    section="A tool",
    points=3,
    difficulty=2,
    minutes=8,
    cases=_cases,
    mistakes=(
        Mistake(
            "`eval`, which runs whatever the policy writes",
            _evaluated,
            "A policy that is rewarded will find what `eval` can do beyond sums, and a user's "
            "prompt may ask it to: read the call, and compute it yourself.",
        ),
        Mistake(
            "the first call anywhere in the text",
            _edit("what is a call: from end to end", "fullmatch", "search"),
            "A turn is a call or it is none: `re.fullmatch` leaves no room for anything else.",
        ),
        Mistake(
            "a call that only has to begin the text",
            _edit("what is a call: from end to end", "fullmatch", "match"),
            "`re.match` does not look at the end: 12 + 3 * 4 would be 15. Use `re.fullmatch`.",
        ),
        Mistake(
            "a division with its remainder dropped",
            _edit("division: when it has a result", _WHOLE, "b != 0"),
            "7 / 2 has no whole result: the answer is “?”, and a policy can learn from it.",
        ),
        Mistake(
            "a division that gives a fraction",
            _edit("division: its result", "a // b", "a / b"),
            "`/` makes a float, “12.0”: for whole numbers it is `//`.",
        ),
        Mistake(
            "a division that gives a fraction, whole or not",
            _edit("division: its result", _WHOLE, "b != 0", "str(a // b)", "str(a / b)"),
            "`/` makes a float, “12.0”: answer with `//` where the result is whole, and “?” where "
            "it is not.",
        ),
        Mistake(
            "a division by zero that raises",
            _edit("division: when it has a result", _WHOLE, "a % b == 0"),
            "The text is the policy's: it will divide by zero, and training must not end there.",
            telling=1,
        ),
        Mistake(
            "a difference that is never below zero",
            _edit("differences", '"-": a - b', '"-": max(a - b, 0)'),
            "3 - 5 is -2. What a policy does with that is its own affair.",
            telling=1,
        ),
        Mistake(
            "“?” for a difference below zero",
            _edit("differences", '"-": a - b', '"-": a - b if a >= b else "?"'),
            "3 - 5 is -2: a calculator has no opinion on which results make sense.",
            telling=1,
        ),
        Mistake(
            "the two numbers exchanged",
            _edit("the order", "a, sign, b", "b, sign, a"),
            "The left number comes first: it matters for - and /.",
        ),
        Mistake(
            "None where there is no call",
            _edit("what is no call", "return answer", "return answer if call else None"),
            'The answer is read by the policy, so it is always a text: "?".',
        ),
        Mistake(
            "an empty text where there is no call",
            _edit("what is no call", "return answer", 'return answer if call else ""'),
            'Silence teaches nothing: the answer to anything else is "?".',
        ),
        Mistake(
            "an exception where there is no call",
            _edit("what is no call", "if call:", "if True:"),
            "`re.fullmatch` returns None where nothing matches: answer “?” then.",
        ),
        Mistake(
            "the call with its result",
            _edit(
                "the text",
                "return answer",
                'return answer if answer == "?" else f"{text} = {answer}"',
            ),
            "The policy wrote the call itself and still sees it: the answer is the result alone.",
        ),
        Mistake(
            "a number in place of its text",
            _edit("the text", "str(a // b)", "a // b", "str({", "({"),
            "The policy reads text: `str(...)`.",
        ),
        Mistake(
            "spaces that must be exactly one",
            _edit("the spaces", _CALL, 'rf"{number} ([-+*/]) {number}"'),
            "Spaces may stand around each number and around the operator, or be missing.",
        ),
        Mistake(
            "a text that is split at its spaces",
            _edit("the spaces", _CALL, _SPLIT),
            "Spaces may stand around each number, and may be missing: 12*3 is a call, too.",
        ),
        Mistake(
            "no spaces before and after the call",
            _edit("the spaces", _CALL, 'rf"{number} *([-+*/]) *{number}"'),
            "Spaces may stand around *each* number: before the first and after the second, too.",
            telling=1,
        ),
        Mistake(
            "numbers with signs of their own",
            _edit("the numbers", "([0-9]", "(-?[0-9]"),
            "A call is digits, one sign, digits: a second sign makes it none.",
            telling=2,
        ),
        Mistake(
            "“?” for leading zeros",
            _edit("the numbers", "if call:", 'if call and not re.search(r"\\b0[0-9]", text):'),
            "007 is a whole number of three digits: `int` reads it. (`eval` does not, and here "
            "nothing is ever run as code.)",
            telling=1,
        ),
        Mistake(
            "`[+-/]`, which is a range of characters",
            _edit("the signs", "[-+*/]", "[+-/*]"),
            "Between two others in brackets a hyphen means “from … to”, here + , - . and /: put "
            "it first, `[-+*/]`.",
            telling=2,
        ),
        Mistake(
            "numbers of any length",
            _edit("the numbers", "{1,9}", "+"),
            "A policy can write digits without end, and a product of two such numbers takes the "
            "time and the context with it: at most nine.",
            telling=1,
        ),
        Mistake(
            "`\\d`, which is more than 0 to 9",
            _edit("the digits", "[0-9]", r"\d"),
            "`\\d` matches the digits of every script: write `[0-9]`.",
            telling=1,
        ),
        Mistake(
            "`\\s` or `strip()`, which also allow line breaks",
            _edit("the spaces", ", text)", ", text.strip())"),
            "Only spaces may stand around: a turn of two lines is no call.",
            telling=1,
        ),
    ),
    alternatives=(line_by_line, by_hand, by_names),
    hints=(
        "Two questions: is this text, from its first character to its last, a call? And which of "
        "four results has it?",
        "`re.fullmatch(pattern, text)` returns None where the whole text does not match; groups "
        "in parentheses give the two numbers and the sign. Division is the one sign that can fail.",
        '    number = r"([0-9]{1,9})"\n'
        '    call = re.fullmatch(rf" *{number} *([-+*/]) *{number} *", text)\n'
        "    if call is None:\n"
        '        return "?"\n'
        "    a, operator, b = int(call[1]), call[2], int(call[3])\n"
        '    if operator == "/":\n'
        "        return ...\n"
        "    return str(...)",
    ),
)
