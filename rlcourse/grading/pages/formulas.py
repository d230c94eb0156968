"""Formulas as MathML, which browsers draw themselves: no page has to load MathJax.

A formula may be a student's, so only elements and attributes that draw are allowed.
"""

import re
from html import escape, unescape
from typing import Any
from xml.etree.ElementTree import Element, tostring

from jinja2 import DictLoader, pass_context
from jinja2.runtime import Context
from latex2mathml.converter import convert_to_element
from nbconvert.exporters import HTMLExporter
from nbconvert.filters.markdown_mistune import InvalidNotebook, IPythonRenderer, MarkdownWithMath

ELEMENTS = {
    *("math", "mrow", "mi", "mn", "mo", "mtext", "mspace", "mstyle", "mpadded", "mphantom"),
    *("mfrac", "msqrt", "mroot", "menclose", "msub", "msup", "msubsup", "mmultiscripts"),
    *("mprescripts", "munder", "mover", "munderover", "mtable", "mtr", "mtd"),
}
ATTRIBUTES = {
    *("xmlns", "display", "displaystyle", "scriptlevel", "mathvariant", "form", "fence"),
    *("separator", "stretchy", "largeop", "movablelimits", "accent", "accentunder", "lspace"),
    *("rspace", "minsize", "maxsize", "width", "height", "depth", "voffset", "linethickness"),
    *("notation", "columnalign", "columnlines", "columnspacing", "rowlines", "rowspacing"),
}
# How `markdown.harmless` leaves a formula of an answer, which is HTML and no longer Markdown.
DOLLARS = re.compile(r"<(span|p)>(\$\$?)([^<$]+)\2</\1>")
ENVIRONMENT = re.compile(r"<p>(\\begin\{(\w+\*?)\}[^<]*\\end\{\2\})</p>")
DISPLAY = {"$": "inline", "$$": "block"}
BASE64 = re.compile(r"[A-Za-z0-9+/=\s]*")


def mathml(tex: str, display: str = "inline") -> str:
    """A formula as an element of a page; as code if it cannot be drawn.

    Args:
        tex: the text between the dollar signs, or a whole environment.
        display: "inline" or "block".
    """
    try:
        drawn = convert_to_element(tex, display=display)
        _keep_what_draws(drawn)
        return tostring(drawn, encoding="unicode")
    except Exception:  # the converter can fail in many ways
        return f"<code>{escape(tex)}</code>"


def _keep_what_draws(element: Element) -> None:
    """Raises ``ValueError`` at an element that does not; its text is text, whatever it holds."""
    for part in element.iter():
        if part.tag not in ELEMENTS:
            raise ValueError(part.tag)
        part.attrib = {name: of for name, of in part.attrib.items() if name in ATTRIBUTES}
        part.text = unescape(part.text or "")  # the converter writes characters as references
        part.tail = unescape(part.tail or "")


def pictures(attachments: Any) -> dict[str, dict[str, str]]:
    """Those attachments of a cell that are pictures and nothing else: they may be a student's."""
    found = {}
    for name, kinds in attachments.items() if isinstance(attachments, dict) else ():
        data = kinds.get("image/png") if isinstance(kinds, dict) else None
        if isinstance(data, str) and BASE64.fullmatch(data):
            found[name] = {"image/png": data}
    return found


class FormulaRenderer(IPythonRenderer):
    """nbconvert's Markdown, with formulas drawn. A picture that is not there is its description."""

    def image(self, text: str, url: str, title: str | None = None) -> str:
        try:
            return super().image(text, url, title)
        except InvalidNotebook:
            return escape(text)

    def inline_math(self, body: str) -> str:
        return mathml(body)

    def block_math(self, body: str) -> str:
        return mathml(body, "block")

    def latex_environment(self, name: str, body: str) -> str:
        return mathml(f"\\begin{{{name}}}{body}\\end{{{name}}}", "block")


class FormulaExporter(HTMLExporter):
    """nbconvert's page of a notebook, without MathJax but with formulas."""

    def __init__(self, **kwargs):
        without_mathjax = {"mathjax.html.j2": "{%- macro mathjax(url='') -%}{%- endmacro -%}"}
        super().__init__(extra_loaders=[DictLoader(without_mathjax)], **kwargs)

    def default_filters(self):
        yield from super().default_filters()
        yield "markdown2html", self._drawn_of_a_cell

    @pass_context
    def _drawn_of_a_cell(self, context: Context, source: str) -> str:
        return self.drawn(source, context.get("cell", {}).get("attachments"))

    def drawn(self, source: str, attachments: Any = None) -> str:
        """Markdown as HTML, with the pictures that are attached to its cell."""
        renderer = FormulaRenderer(
            escape=False,
            attachments=pictures(attachments),
            anchor_link_text=self.anchor_link_text,
            exclude_anchor_links=self.exclude_anchor_links,
            **self.lexer_options,
        )
        page = MarkdownWithMath(renderer=renderer).render(source)
        page = DOLLARS.sub(lambda found: mathml(unescape(found[3]), DISPLAY[found[2]]), page)
        return ENVIRONMENT.sub(lambda found: mathml(unescape(found[1]), "block"), page)
