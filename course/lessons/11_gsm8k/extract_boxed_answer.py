"""Reading one number from a box that a model has written in LaTeX."""

import re
from collections.abc import Iterator

from rlcourse.checks.declaring import Case, CaseSampler, Sketch
from rlcourse.tasks.numbers import exact_number, numbers_in


def cases(draw: CaseSampler) -> Iterator[Case]:
    a, b, c = draw.integer(11, 49), draw.integer(51, 99), draw.integer(3, 9)
    boxes = {
        "worked: three quarters": r"\frac{3}{4}",
        "cents": f"{a}.50",
        "thousands": f"{c},{a}0",
        "thousands as LaTeX writes them": f"{c}{{,}}{a}0",
        "a thin space among the digits": rf"{c}\,{a}0",
        "dollars": rf"\${b}",
        "percent": rf"{b}\%",
        "a negative number": f"-{a}",
        "an equation": f"x = {a}",
        "a unit": rf"{a} \text{{ km}}",
        "a unit without a space": rf"{a}\,\mathrm{{km}}",
        "all of it as text": rf"\text{{{a} eggs}}",
        "a fraction of the larger kind": rf"\dfrac{{{c}}}{{8}}",
        "a negative fraction": rf"-\frac{{{c}}}{{2}}",
        "a mixed number": rf"{a}\frac{{1}}{{2}}",
        "two numbers": f"{a} or {b}",
        "two numbers as text": rf"{a} \text{{ h }} {b} \text{{ min}}",
        "nothing": "",
        "a power": f"x^{c}",
        "a root": rf"\sqrt{{{a}}}",
    }
    texts = {label: rf"So it is \(\boxed{{{box}}}\), in 2 steps." for label, box in boxes.items()}
    texts |= {
        "no box": f"It is {a}.",
        "no box, and several numbers": f"{a} + {b} = {a + b}",
        "two boxes": rf"\boxed{{{a}}} No, wait. \boxed{{{b}}}",
        "a second box that is cut off": rf"\boxed{{{a}}} or \boxed{{{b}",
        "cut off in a fraction": rf"\boxed{{\frac{{{a}}}{{{b}}}",
        "a word in the last of two boxes": rf"\boxed{{{a}}} or \boxed{{none}}",
    }
    for label, text in texts.items():
        yield Case(label, {"text": text})


BOX = "\\boxed{"
FRACTION = r"\\d?frac\{([0-9]+)\}\{([0-9]+)\}"
ORNAMENT = r"\\text|\\mathrm|\\[%,]|[{}]"


def in_steps(text):
    inside = to_closing_brace(text, text.rfind(BOX)) or ""
    inside = re.sub(FRACTION, r"\1/\2", re.sub(r"(?<=[0-9])\\(?=d?frac)", r" \\", inside))
    plain = re.sub(ORNAMENT, "", inside).replace(r"\$", "$")
    numbers = numbers_in(plain)
    readable = len(numbers) == 1 and "\\" not in plain and "^" not in plain
    number = exact_number(numbers[0]) if readable else None
    return number


def to_closing_brace(text: str, start: int, otherwise: str | None = None) -> str | None:
    """What stands in the box that begins at `start`; `otherwise` where it is not closed."""
    depth = 0
    for place in range(start + len(BOX) - 1, len(text) if start >= 0 else 0):
        depth += (text[place] == "{") - (text[place] == "}")
        if depth == 0:
            return text[start + len(BOX) : place]
    return otherwise


def found_by(pattern, text):
    return exact_number((re.findall(pattern, text) or [""])[-1])


def _by_pattern(text):
    """A pattern for braces two deep, which is as deep as these boxes go."""
    box = re.match(r"((?:[^{}]|\{(?:[^{}]|\{[^{}]*\})*\})*)\}", text.split(BOX)[-1])
    if BOX not in text or not box:
        return None
    plain = re.sub(r"([0-9]?)\\d?frac\{([0-9]+)\}\{([0-9]+)\}", r"\1 \2/\3", box[1])
    plain = re.sub(r"- ([0-9]+/)", r"-\1", plain)
    for ornament in (r"\text", r"\mathrm", r"\%", r"\,", "{", "}"):
        plain = plain.replace(ornament, "")
    plain = plain.replace(r"\$", "$")
    found = numbers_in(plain)
    return exact_number(found[0]) if len(found) == 1 and not set("\\^") & set(plain) else None


sketch = Sketch(in_steps, to_closing_brace, found_by)
alternatives = (_by_pattern,)
