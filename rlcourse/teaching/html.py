"""Markdown of lessons as HTML that needs no network: formulas are MathML, or TeX for Moodle."""

from collections.abc import Callable
from functools import cache
from html import escape

from markdown_it import MarkdownIt
from mdit_py_plugins.dollarmath import dollarmath_plugin

from rlcourse.grading.pages.formulas import mathml

Formula = Callable[[str, bool], str]  # of the TeX, and whether it stands on lines of its own


def drawn(tex: str, block: bool) -> str:
    """Drawn by the browser itself."""
    return mathml(tex.strip(), "block" if block else "inline")


def for_moodle(tex: str, block: bool) -> str:
    """As Moodle's MathJax filter reads it."""
    return f"\\[{escape(tex)}\\]" if block else f"\\({escape(tex)}\\)"


@cache
def _parser(formula: Formula) -> MarkdownIt:
    parser = MarkdownIt("commonmark", {"html": False}).enable("table")
    dollarmath_plugin(
        parser,
        allow_labels=False,
        double_inline=True,
        renderer=lambda tex, options: formula(tex, options["display_mode"]),
    )
    return parser


def html(markdown: str, formula: Formula = drawn) -> str:
    """Blocks of HTML."""
    return _parser(formula).render(markdown).strip()


def inline(markdown: str, formula: Formula = drawn) -> str:
    """HTML for within a block."""
    return _parser(formula).renderInline(markdown)
