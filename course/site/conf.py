"""Sphinx's configuration of the site, whose pages `pages.py` writes; `make site` runs both.

Everything that a page loads comes from here or from packages: the theme, the search. Formulas are
MathML, which browsers draw without a script.
"""

import os
import re
import sys
from html import escape
from pathlib import Path
from textwrap import shorten

from docutils import nodes

import rlcourse
from rlcourse import published
from rlcourse.courses import shipped
from rlcourse.grading.pages.formulas import mathml

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE))
import web  # noqa: E402

project = "rlcourse"
author = "The rlcourse authors"
copyright = f"{author}. Code: MIT. Lessons: CC BY 4.0"
version = release = rlcourse.__version__
extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon"]

myst_enable_extensions = ["dollarmath", "html_image"]
myst_heading_anchors = 4
myst_dmath_double_inline = True
default_role = "code"  # docstrings write `name` as Markdown does
autodoc_member_order = "bysource"
autodoc_typehints = "signature"
autodoc_preserve_defaults = True

html_theme = "furo"
html_title = project
html_static_path = [str(HERE / "static")]
html_favicon = str(HERE / "static/favicon.svg")
html_css_files = ["site.css"]
html_js_files = ["site.js"]
html_search_scorer = str(HERE / "scorer.js")
html_copy_source = False
html_show_sourcelink = False
html_show_sphinx = False
html_theme_options = {"navigation_with_keys": True}
pygments_style, pygments_dark_style = "a11y-high-contrast-light", "a11y-high-contrast-dark"
html_math_renderer = "mathml"
repository = os.environ.get("RLCOURSE_REPOSITORY") or published.REPOSITORY
html_baseurl = published.site(repository)
templates_path = [str(HERE / "templates")]
highlight_language = "text"
LONGEST = 160  # letters of a description
CODE = re.compile(r"(`+[^`]*`+)")
INDEX = re.compile(r"(?:(?<=\b\w)|(?<=\u0302))_\{?(?P<it>(?<=\{)[^}]+|\w\b)\}?")
EXPONENT = re.compile(r"\^\{?(?P<it>(?<=\{)[^}]+|\w)\}?")


def draw_inline(self, node):
    self.body.append(f'<span class="math">{mathml(node.astext())}</span>')
    raise nodes.SkipNode


def draw_block(self, node):
    self.body.append(f'<div class="math">{mathml(node.astext(), "block")}</div>')
    raise nodes.SkipNode


def describe(app, page, template, context, doctree):
    """What search engines and links show of a page."""
    about = escape(shorten(description(app, page, doctree), LONGEST, placeholder=" …"))
    title = escape(re.sub(r"<[^>]+>", "", context.get("title", project)))
    said = {"og:type": "website", "og:site_name": project, "og:title": title}
    said |= {"og:description": about}
    if html_baseurl:
        said |= {"og:url": html_baseurl + app.builder.get_target_uri(page)}
        said |= {"og:image": f"{html_baseurl}card.png", "og:image:alt": "A mistake, named"}
    tags = [f'<meta name="description" content="{about}">']
    tags += [f'<meta property="{name}" content="{value}">' for name, value in said.items()]
    tags.append('<meta name="twitter:card" content="summary_large_image">')
    context["metatags"] = context.get("metatags", "") + "\n".join(tags)


def description(app, page, doctree) -> str:
    """A page's own description, else its first sentences."""
    if said := app.env.metadata.get(page, {}).get("description"):
        return said
    for paragraph in doctree.findall(nodes.paragraph) if doctree else ():
        text = " ".join(paragraph.astext().split())
        if len(text) > 60 and not any(map(list, map(paragraph.findall, (nodes.math, nodes.raw)))):
            return text
    return f"{project}: {shipped().title}"


def list_pages(app, error):
    """A sitemap, if the address of the site is known."""
    if error is None and app.builder.format == "html" and html_baseurl:
        pages = [app.builder.get_target_uri(name) for name in app.env.found_docs]
        Path(app.outdir, "sitemap.xml").write_text(web.sitemap(html_baseurl, pages), "utf-8")


def add_extra(app):
    """Sphinx's paths are relative to this file; the pages, and the files next to them, are not."""
    app.config.html_extra_path = [str(Path(app.srcdir).with_name("extra"))]


def give_captions_a_level(app, page, template, context, doctree):
    """The theme's headings in the list of pages lack the levels that screen readers need."""
    tree = context.get("furo_navigation_tree", "")
    context["furo_navigation_tree"] = tree.replace(
        'role="heading"', 'role="heading" aria-level="2"'
    )


def draw_formulas(app, what, name, obj, options, lines):
    """A docstring's formulas: |x| is no reference, V_{t+1} has an index, e^{−d} an exponent."""
    parts = CODE.split("\n".join(lines))
    for i in range(0, len(parts), 2):  # what is no code
        parts[i] = re.sub(r"\|(?=\S)([^|`]+?)(?<=\S)\|", r"\\|\1\\|", parts[i])
        for role, pattern in (("sub", INDEX), ("sup", EXPONENT)):
            parts[i] = pattern.sub(rf"\\ :{role}:`\g<it>`\\ ", parts[i])
    lines[:] = "".join(parts).split("\n")


def setup(app):
    app.connect("autodoc-process-docstring", draw_formulas)
    app.connect("html-page-context", give_captions_a_level, priority=900)
    app.connect("builder-inited", add_extra)
    app.connect("html-page-context", describe)
    app.connect("build-finished", list_pages)
    app.add_html_math_renderer("mathml", (draw_inline, None), (draw_block, None))
