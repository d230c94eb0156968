"""Formulas as MathML, which browsers draw themselves: no page has to load MathJax.

A formula may be a student's, so only elements and attributes that draw are allowed, and every
character that could mean something to a program that shows the page is written as a number.
"""

import re
from html import unescape
from xml.etree.ElementTree import Element

from latex2mathml.converter import convert_to_element

LONGEST = 2000  # characters: drawing takes the square of the length
ELEMENTS = {
    *("math", "mrow", "mi", "mn", "mo", "mtext", "mspace", "mstyle", "mphantom"),
    *("mfrac", "msqrt", "mroot", "menclose", "msub", "msup", "msubsup", "mmultiscripts"),
    *("mprescripts", "munder", "mover", "munderover", "mtable", "mtr", "mtd"),
}
ATTRIBUTES = {
    *("display", "displaystyle", "scriptlevel", "mathvariant", "form", "fence", "separator"),
    *("stretchy", "largeop", "movablelimits", "accent", "accentunder", "lspace", "rspace"),
    *("minsize", "maxsize", "width", "linethickness", "notation", "columnalign", "columnlines"),
    *("columnspacing", "rowlines", "rowspacing"),
}
VALUE = re.compile(r"[a-z -]{1,80}|[-+]?[0-9]?(\.[0-9]{1,4})?(em|ex|px|pt)?")
_LETTERS = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789")
PLAIN = _LETTERS | frozenset(" .,;?()=+/%-'")  # mean nothing inside a block of HTML


def mathml(tex: str, display: str = "inline") -> str:
    """A formula as an element of a page; as code if it cannot be drawn.

    Args:
        tex: the text between the dollar signs, or a whole environment.
        display: "inline" or "block".
    """
    try:
        if len(tex) <= LONGEST:
            return _drawn(convert_to_element(tex, display=display))
    except Exception:  # the converter can fail in many ways
        pass
    return f"<code>{as_text(tex, keep_dollars=True)}</code>"


def _drawn(element: Element) -> str:
    """Raises ``ValueError`` at what does not draw, or might begin a formula of another program."""
    inside, after = (unescape(text or "") for text in (element.text, element.tail))
    if element.tag not in ELEMENTS or {"$", "\\"} & {*inside, *after}:
        raise ValueError(element.tag)
    said = ((k, v) for k, v in element.attrib.items() if k in ATTRIBUTES and VALUE.fullmatch(v))
    opening = "".join(f' {name}="{value}"' for name, value in said)
    parts = [as_text(inside), *map(_drawn, element)]
    return f"<{element.tag}{opening}>{''.join(parts)}</{element.tag}>{as_text(after)}"


def as_text(text: str, keep_dollars: bool = False) -> str:
    """Text as HTML. A dollar or backslash stands in an element of its own, where no formula is
    looked for across its edge; within code and attributes none is looked for at all."""
    return "".join(c if c in PLAIN else _character(c, keep_dollars) for c in text)


def _character(c: str, keep_dollars: bool) -> str:
    if ord(c) > 127 and c.isprintable():
        return c
    number = f"&#{ord(c)};"
    return number if keep_dollars or c not in "$\\" else f"<span>{number}</span>"
