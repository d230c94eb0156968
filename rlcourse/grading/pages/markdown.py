"""Student Markdown, rewritten so that every program that shows it shows the same harmless thing.

Feedback, Formgrader and JupyterLab each read Markdown in their own way, and the page typesets what
looks like TeX. So nothing of a student's Markdown is passed on: it is parsed here, and what is left
is one block of HTML made of the tags and link schemes that are listed below and of MathML, in which
every character that could mean something to one of those programs is written as a number.
"""

import re
from functools import cache

from markdown_it import MarkdownIt
from markdown_it.token import Token
from mdit_py_plugins.amsmath import amsmath_plugin
from mdit_py_plugins.dollarmath import dollarmath_plugin

from rlcourse.grading.pages.formulas import PLAIN, as_text, mathml

LONGEST_MARKDOWN = 20_000  # characters; longer text is shown as plain text
DEEPEST = 20
# To the web or to a mailbox, by a whole address
LINK = re.compile(r"(https?://[^/?#\\]|mailto:)[!-~]*", re.ASCII | re.IGNORECASE)
BLOCKS = {
    "p", "h1", "h2", "h3", "h4", "h5", "h6", "ul", "ol", "li", "blockquote",
    "table", "thead", "tbody", "tr", "th", "td",
}  # fmt: skip
SPANS = {"em", "strong", "s"}
_VERBATIM = PLAIN | frozenset('\n"')  # nor in Markdown, but for lists


def harmless(markdown: str) -> str:
    """The text for a Markdown cell: unchanged if it can do no harm, else rewritten."""
    if len(markdown) > LONGEST_MARKDOWN:
        return _div(f"<pre>{as_text(markdown, keep_dollars=True)}</pre>")
    if all(c in _VERBATIM or c.isalnum() for c in markdown):
        return markdown
    return _div("".join(_html(_parser().parse(markdown))))


def plain(text: str) -> str:
    """Text for a line of Markdown, without any link, tag, formula or emphasis."""
    return as_text(text.replace("\n", " "))


def _div(html: str) -> str:
    """A block of HTML, which to every reader of Markdown ends at the first blank line."""
    lines = f"<div>{html}</div>".split("\n")
    return "\n".join(line for line in lines if line.strip())


@cache
def _parser() -> MarkdownIt:
    parser = MarkdownIt("commonmark", {"html": False, "maxNesting": DEEPEST})
    parser.enable(["table", "strikethrough"])
    dollarmath_plugin(parser, allow_labels=False, double_inline=True)
    amsmath_plugin(parser)
    return parser


def _html(tokens: list[Token]):
    links: list[str] = []  # what closes each link that is open
    for token in tokens:
        kind = token.type
        if kind == "inline":
            yield from _html(token.children or [])
        elif kind == "link_open":
            opening, closing = _link(str(token.attrGet("href") or ""))
            links.append(closing)
            yield opening
        elif kind == "link_close":
            yield links.pop()
        elif kind in ("math_inline", "math_inline_double", "math_block", "amsmath"):
            yield _formula(token.content, kind)
        elif kind in ("fence", "code_block"):
            yield f"<pre><code>{as_text(token.content.rstrip(), keep_dollars=True)}</code></pre>\n"
        elif kind == "code_inline":
            yield f"<code>{as_text(token.content, keep_dollars=True)}</code>"
        elif kind == "image":
            yield f"{as_text(token.content)} (picture)"
        elif kind == "hr":
            yield "<hr>\n"
        elif kind in ("softbreak", "hardbreak"):
            yield "<br>\n" if kind == "hardbreak" else "\n"
        elif token.nesting and token.tag in BLOCKS | SPANS:
            yield "" if token.hidden else _tag(token)
        elif token.nesting >= 0:
            yield as_text(token.content)  # text, and any other kind of token


def _tag(token: Token) -> str:
    slash = "/" if token.nesting < 0 else ""
    start = token.attrGet("start") if token.tag == "ol" and not slash else None
    number = f' start="{start}"' if isinstance(start, int) else ""
    return f"<{slash}{token.tag}{number}>" + "\n" * (slash == "/" and token.tag in BLOCKS)


def _link(target: str) -> tuple[str, str]:
    """(opening, closing) of a link; one that does not lead to the web shows its target."""
    if LINK.fullmatch(target):
        return f'<a href="{as_text(target, keep_dollars=True)}" rel="noopener noreferrer">', "</a>"
    return "", f" (<code>{as_text(target, keep_dollars=True)}</code>)"


def _formula(source: str, kind: str) -> str:
    if kind in ("math_block", "amsmath"):
        return f"<p>{mathml(source, 'block')}</p>\n"
    return mathml(source, "inline" if kind == "math_inline" else "block")
