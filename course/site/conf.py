"""Sphinx's configuration of the site, whose pages `pages.py` wrote; `make site` runs both.

Everything that a page loads comes from packages: the theme and its fonts, MathJax, the search.
"""

import importlib.util
import re
import shutil
from pathlib import Path

import rlcourse

project, author = "rlcourse", "The rlcourse authors"
copyright = "code: MIT, lessons: CC BY 4.0"
version = release = rlcourse.__version__
extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon", "sphinx.ext.mathjax"]

myst_enable_extensions = ["dollarmath", "html_image"]
myst_heading_anchors = 4
myst_dmath_double_inline = True
default_role = "code"  # docstrings write `name` as Markdown does
autodoc_member_order = "bysource"
autodoc_typehints = "signature"
autodoc_preserve_defaults = True

html_theme = "furo"
html_title = "rlcourse"
html_static_path = [str(Path(__file__).with_name("static"))]
html_favicon = str(Path(__file__).with_name("static") / "favicon.svg")
html_css_files = ["site.css"]
html_js_files = ["site.js"]
html_copy_source = False
html_show_sourcelink = False
html_show_sphinx = False
html_theme_options = {"navigation_with_keys": True}
pygments_style, pygments_dark_style = "a11y-high-contrast-light", "a11y-high-contrast-dark"
mathjax_path = "mathjax/tex-chtml.js"
mathjax3_config = {"options": {"enableMenu": False}, "chtml": {"scale": 0.92}}
highlight_language = "text"


def bundle_mathjax(app, error):
    """Of MathJax what formulas need: the renderer and its fonts."""
    if error is None and app.builder.format == "html":
        found = importlib.util.find_spec("sphinx-mathjax-offline").submodule_search_locations[0]
        source, target = Path(found, "static/mathjax"), Path(app.outdir, "_static/mathjax")
        fonts = "output/chtml/fonts/woff-v2"
        shutil.copytree(source / fonts, target / fonts, dirs_exist_ok=True)
        shutil.copy(source / "tex-chtml.js", target)


def add_extra(app):
    """Sphinx's paths are relative to this file; the pages, and what lies beside them, are not."""
    app.config.html_extra_path = [str(Path(app.srcdir).with_name("extra"))]


def give_captions_a_level(app, page, template, context, doctree):
    """The theme's headings in the list of pages lack what a screen reader sorts headings by."""
    tree = context.get("furo_navigation_tree", "")
    context["furo_navigation_tree"] = tree.replace(
        'role="heading"', 'role="heading" aria-level="2"'
    )


def keep_absolute_values(app, what, name, obj, options, lines):
    """|x| in a docstring is no reference to a substitution."""
    lines[:] = [re.sub(r"\|(?=\S)([^|`]+?)(?<=\S)\|", r"\\|\1\\|", line) for line in lines]


def setup(app):
    app.connect("autodoc-process-docstring", keep_absolute_values)
    app.connect("html-page-context", give_captions_a_level, priority=900)
    app.connect("builder-inited", add_extra)
    app.connect("build-finished", bundle_mathjax)
