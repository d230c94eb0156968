"""Completions as HTML, and where in one its final answer stands."""

import re
from decimal import Decimal, InvalidOperation
from html import escape as html_escape

from markupsafe import Markup

NUMBER = re.compile(r"(?:[-−]\s*)?(?:[$€£]\s*)?(?:\d[\d,]*(?:\.\d+)?|\.\d+)")
OPENINGS = ("####", "<answer>")  # what announces the answer: a number after it is the one meant


def escape(text: str) -> str:
    """Text as HTML in which JupyterLab finds no formula between two dollar signs."""
    return html_escape(text).replace("$", "<span>$</span>")


def with_answer_marked(text: str, given: str | None) -> Markup:
    """The text, escaped, with the number `given` that was read from it in a ``<mark>``.

    It is the first number of that value after the last opening (``####``, ``<answer>``), or else
    the last one of the text. Unmarked where no number has the value.
    """
    span = answer_span(text, given)
    if span is None:
        return Markup(escape(text))
    start, end = span
    before, answer, after = map(escape, (text[:start], text[start:end], text[end:]))
    return Markup(f"{before}<mark>{answer}</mark>{after}")


def answer_span(text: str, given: str | None) -> tuple[int, int] | None:
    """Start and end of the answer in `text`, or None."""
    value = _value(given or "")
    if value is None:
        return None
    same = [match.span() for match in NUMBER.finditer(text) if _value(match.group()) == value]
    announced = max(text.rfind(opening) for opening in OPENINGS)
    after = [span for span in same if announced >= 0 and span[0] > announced]
    chosen = after[:1] or same[-1:]
    return chosen[0] if chosen else None


def _value(number: str) -> Decimal | None:
    try:
        return Decimal(re.sub(r"[\s$€£,]", "", number).replace("−", "-"))
    except InvalidOperation:
        return None
