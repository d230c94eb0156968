"""Student Markdown, rewritten so that every program that shows it shows the same harmless thing.

Feedback, Formgrader and JupyterLab each read Markdown in their own way. So nothing of a student's
Markdown is passed on: markdown-it makes one block of HTML of it, without raw HTML, pictures and
other links than those to the web, and every character of its texts that could mean something to
one of those programs is written as a number.
"""

import re
from collections.abc import Callable, Sequence
from functools import cache, partial
from typing import Any

from markdown_it import MarkdownIt
from markdown_it.token import Token
from mdit_py_plugins.amsmath import amsmath_plugin
from mdit_py_plugins.dollarmath import dollarmath_plugin

from rlcourse.grading.pages.formulas import PLAIN, as_text, mathml

LONGEST_MARKDOWN = 20_000  # characters; longer text is shown as plain text
MOST_DOLLARS = 1000  # each formula takes about a millisecond to draw
DEEPEST = 20
# To the web or to a mailbox, by a whole address; other links stay as they were written, as text
LINK = re.compile(r"(https?://[^/?#$\\]|mailto:)[^$\\\s]*", re.IGNORECASE)
_VERBATIM = PLAIN | frozenset('\n"')  # means nothing in Markdown either, but for lists


def harmless(markdown: str) -> str:
    """The text for a Markdown cell: unchanged if it can do no harm, else rewritten."""
    if len(markdown) > LONGEST_MARKDOWN or markdown.count("$") > MOST_DOLLARS:
        return _div(f"<pre>{as_text(markdown, keep_dollars=True)}</pre>")
    if all(c in _VERBATIM or c.isalnum() for c in markdown):
        return markdown
    return _div(_parser().render(markdown))


def plain(text: str) -> str:
    """Text for a line of Markdown, without any link, tag, formula or emphasis."""
    return as_text(text.replace("\n", " "))


def _div(html: str) -> str:
    """A block of HTML, which to every reader of Markdown ends at the first blank line."""
    lines = f"<div>{html}</div>".split("\n")
    return "\n".join(line for line in lines if line.strip())


@cache
def _parser() -> MarkdownIt:
    parser = MarkdownIt("commonmark", {"html": False, "xhtmlOut": False, "maxNesting": DEEPEST})
    parser.enable(["table", "strikethrough"])
    parser.validateLink = lambda url: bool(LINK.fullmatch(url))  # type: ignore[method-assign]
    dollarmath_plugin(parser, allow_labels=False, double_inline=True)
    amsmath_plugin(parser)
    for kind, shown in SHOWN.items():
        parser.renderer.rules[kind] = partial(_by, shown)  # type: ignore[attr-defined]
    return parser


def _by(shown: Callable[[Token], str], tokens: Sequence[Token], i: int, *_: Any) -> str:
    return shown(tokens[i])


def _code(token: Token) -> str:
    return f"<code>{as_text(token.content.rstrip(), keep_dollars=True)}</code>"


def _link(token: Token) -> str:
    target = as_text(str(token.attrGet("href")), keep_dollars=True)
    return f'<a href="{target}" rel="noopener noreferrer">'


SHOWN: dict[str, Callable[[Token], str]] = {
    **dict.fromkeys(("math_inline", "math_inline_double"), lambda token: mathml(token.content)),
    **dict.fromkeys(
        ("math_block", "amsmath"), lambda token: f"<p>{mathml(token.content, 'block')}</p>\n"
    ),
    **dict.fromkeys(("fence", "code_block"), lambda token: f"<pre>{_code(token)}</pre>\n"),
    **dict.fromkeys(("th_open", "td_open"), lambda token: f"<{token.tag}>"),  # no style
    "code_inline": _code,
    "image": lambda token: f"{as_text(token.content)} (picture)",
    "link_open": _link,
    "text": lambda token: as_text(token.content),
}
