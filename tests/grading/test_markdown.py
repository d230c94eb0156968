"""Whatever a student's Markdown holds, what staff see has no scripts, pictures or foreign links."""

from html.parser import HTMLParser

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from nbconvert.filters import strip_files_prefix
from nbconvert.filters.markdown_mistune import IPythonRenderer, MarkdownWithMath

from rlcourse.grading.pages.formulas import ATTRIBUTES, ELEMENTS
from rlcourse.grading.pages.markdown import harmless, plain

SCHEMES = "http", "https", "mailto"
TAGS = ELEMENTS | {
    *("div", "pre", "code", "a", "br", "hr", "span", "em", "strong", "s", "p", "h1", "h2", "h3"),
    *("h4", "h5", "h6", "ul", "ol", "li", "blockquote", "table", "thead", "tbody", "tr", "th"),
    "td",
}

HOSTILE = [
    r"[x](javascript\:alert(1))",
    "[x](javascript:alert(1))",
    "[x](JaVaScRiPt:alert(1))",
    "[x](java&#115;cript&colon;alert(1))",
    "[x](java\tscript:alert(1))",
    "[x](<java\nscript:alert(1)>)",
    "[x](\x01javascript:alert(1))",
    "[x](vbscript:x) [y](data:text/html,<script>alert(1)</script>) [z](file:///etc/passwd)",
    "[x](data:image/svg+xml;base64,PHN2Zz4=)",
    "[x](//evil.example) [y](/formgrader/x) [z](../../x) [w](#top) [v](?a=b)",
    "[x](http:javascript:alert(1)) [y](https:evil) [z](http:///x) [w](http&#58;x)",
    "[x][1]\n\n[1]: javascript:alert(1) 'title'",
    "<javascript:alert(1)> <data:text/html,x> <ftp://x.y> <vscode://x>",
    "javascript:alert(1) ftp://evil.example/x",
    "| [x](javascript\\:a) | b |\n|---|---|\n| <javascript:a> | ![x](http://evil/x.png) |",
    "- [x](javascript\\:a)\n  - > [y](javascript\\:b)",
    "[**[x](javascript\\:a)**](javascript\\:b)",
    '[x](https://a.b "onmouseover=alert(1)")',
    '[x](https://a.b/"onmouseover="alert(1))',
    "[x](https://a.b/'><script>alert(1)</script>)",
    "![x](http://evil.example/x.png) ![y][1]\n\n[1]: http://evil.example/y.png",
    "[![x](http://evil.example/x.png)](javascript\\:a)",
    "<script>alert(1)</script><img src=x onerror=alert(1)>",
    "<svg/onload=alert(1)><iframe src=//evil></iframe><style>*{display:none}</style>",
    "<!-- a\n\n--> <img src=x onerror=alert(1)>",
    "<div>\n\n[x](javascript\\:a)\n\n</div></div></div><base href=//evil>",
    "&lt;script&gt;alert(1)&lt;/script&gt;",
    "```\n</code></pre><script>alert(1)</script>\n```",
    "```mermaid\ngraph TD; A[<img src=x onerror=alert(1)>]\n```",
    "`<img src=x onerror=alert(1)>` ``` `` ```",
    "    <script>alert(1)</script>",
    r"$\href{javascript:alert(1)}{x}$ $$\href{javascript:alert(1)}{x}$$",
    r"\(\href{javascript:alert(1)}{x}\) \[\href{javascript:alert(1)}{x}\]",
    "\\begin{align}\\href{javascript:alert(1)}{x}\\end{align}",
    "$\\begin{align}\n\\href{javascript:alert(1)}{x}\\end{align}$",
    r"$\require{action}\unicode{x3c}\def\x{\href}\let\y\href\style{position:fixed}{x}$",
    r"$\class{x}{y}\cssId{top}{y}\rule{900em}{900em}\kern-90em\raise9em{x}$",
    r"$\def\a{\a\a}\a$ $\newcommand{\x}{y}$ $\hr%" + "\nef{javascript:a}{b}$",
    r"$<img src=x onerror=alert(1)>$ $\text{<script>alert(1)</script>}$",
    r"$a$\href{javascript:alert(1)}{x}$b$",
    "$&lt;img src=x&gt;$ $x$<b>$y$",
    "$ { $ [x](javascript\\:a) $ } $",
    "\\" + "href{javascript:a}{b} \\\\" + "\\href{a}{b}",
    "&#36;\\href{javascript:a}{b}&#36; &dollar;\\href{a}{b}&dollar;",
    "*$*\\href{javascript:a}{b}*$*",
    "x\n\n\n\n<script>alert(1)</script>\n\n    \n\t\n<b>",
    "x\x0b\x0c\x85\u2028\u2029\n<script>alert(1)</script>",
    "www.evil.example http://evil.example/<script> a@b.c mailto:a@b.c",
]  # fmt: skip


class Page(HTMLParser):
    """Everything in a page that could do something, and the texts outside of code."""

    def __init__(self, html: str):
        super().__init__(convert_charrefs=True)
        self.tags, self.attributes, self.links, self.texts, self.open = set(), set(), [], [], []
        self.feed(html)
        self.close()

    def handle_starttag(self, tag, attributes):
        self.tags.add(tag)
        self.attributes |= {name for name, _ in attributes}
        self.links += [value for name, value in attributes if name == "href"]
        if tag not in ("br", "hr"):
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert tag in ("br", "hr") or (self.open and self.open.pop() == tag)

    def handle_data(self, text):
        if not {"code", "pre"} & {*self.open}:
            self.texts.append(text)

    def handle_comment(self, text):
        self.tags.add("comment")

    handle_decl = handle_pi = unknown_decl = handle_comment


def shown(markdown: str) -> str:
    """The HTML of feedback and of Formgrader for a student's Markdown."""
    renderer = IPythonRenderer(escape=False)
    return strip_files_prefix(MarkdownWithMath(renderer=renderer).render(harmless(markdown)))


def verify(markdown: str) -> None:
    page = Page(shown(markdown))
    assert page.tags <= TAGS, page.tags - TAGS
    assert page.attributes <= {"href", "rel", "start"} | ATTRIBUTES
    assert page.open == []
    for link in page.links:
        scheme, _, rest = link.partition(":")
        assert scheme.lower() in SCHEMES and rest and link.isprintable() and " " not in link
    for text in page.texts:  # where a program that typesets formulas would look for one
        assert text in ("$", "\\") or not {"$", "\\"} & {*text}, text


@pytest.mark.parametrize("source", HOSTILE)
def test_hostile_markdown_becomes_text(source):
    verify(source)


FRAGMENTS = st.sampled_from(
    [*HOSTILE, "[", "]", "(", ")", "](", "javascript", ":", "\\:", "&#58;", "&colon;", "<", ">",
     "!", "`", "```", "$", "$$", "\\", "\\(", "\\)", "\\[", "\\]", "\\begin{align}", "\\end{align}",
     "\\href", "\\begin{a}", "{", "}", "\n", "\n\n", " ", "    ", "\t", "# ", "- ", "> ", "1. ",
     "|", "\n|---|\n", "*", "_", "~~", "&", "&lt;", "#", "@", "@@0@@", "%", "https://a.b", "<a ",
     "\u2028", "\x0c", "a", "A", "1", "é"]
)  # fmt: skip


@settings(max_examples=300, deadline=None)
@given(st.lists(FRAGMENTS, max_size=30).map("".join))
def test_markdown_of_any_shape_becomes_text(source):
    verify(source)


@pytest.mark.parametrize(
    "source, wanted",
    [
        ("$a < b$ and `x <= y`, 3<4", ["<mo>&#60;</mo>", "<code>x &#60;= y</code>", "3&#60;4"]),
        ("$$\nc < d\n$$", ['<math display="block">', "<mo>&#60;</mo><mi>d</mi>"]),
        ("so\n\\begin{align}\nx &= 1\n\\end{align}", ["<mi>x</mi>", "<mo>=</mo><mn>1</mn>"]),
        ("# A *b* **c** ~~d~~", ["<h1>A <em>b</em> <strong>c</strong> <s>d</s></h1>"]),
        ("| a | b |\n|---|---|\n| 1 | $x_1$ |", ["<th>a</th>", "<mi>x</mi><mn>1</mn></msub>"]),
        ("- a\n  - `b`\n\n> c", ["<li>a\n<ul>\n<li><code>b</code></li>", "<blockquote>\n<p>c</p>"]),
        ("3. a\n4. b", ["<div>", "<ol"]),
        ("```python\nfor x in y:\n\n    print(x)\n```", ["<pre><code>for x in y"]),
        ("see [it](https://a.b/c?d=e&f=g)", ['href="https&#58;//a.b/c?d=e&#38;f=g"', ">it</a>"]),
        ("it costs $5", ["it costs <span>&#36;</span>5"]),
        (r"$\left[\nabla \log \pi\right]$", ["<mo>∇</mo><mi>log</mi><mi>π</mi>"]),
        ("![plot](https://a.b/a.png)", ["plot (picture)"]),
        ("[x](javascript:y)", ["javascript&#58;y"]),
    ],
)  # fmt: skip
def test_what_an_honest_student_writes_stays_readable(source, wanted):
    html = harmless(source) if wanted[-1] != "<ol" else shown(f"{source} \\_")
    assert all(part in html for part in wanted), html


def test_a_page_without_end_is_shown_as_text_and_at_once():
    long = "[" * 30_000 + "<script>" + "\\begin{a}" * 5000
    assert Page(shown(long)).tags == {"div", "pre"}
    for part in ("\\begin{a}", "$$", "[", "![", "`", "*a **b ", "> ", "- ", "<", "&", "|a", "$x"):
        verify((part * 20_000)[:20_000])


def test_a_line_of_a_report_is_text_alone():
    line = plain("![x](y) <b> $\\href{javascript:a}{b}$ `c` \n# d")
    assert Page(line).tags <= {"span"} and "\n" not in line
    assert Page(MarkdownWithMath(renderer=IPythonRenderer(escape=False)).render(line)).links == []
