"""Formgrader's own pages: what a student or a platform wrote is text on them, in HTML and in JS."""

import re
import sys
from pathlib import Path
from types import SimpleNamespace

import classroom as room
import nbgrader
import pytest
from jinja2 import Environment, FileSystemLoader

from rlcourse.grading.nbgrader_plugin import render_escaped
from rlcourse.grading.pages.showing import Page, without_markup

sys.path.insert(0, str(Path(__file__).parents[1] / "browser"))

TEMPLATES = Path(nbgrader.__file__).parent / "server_extensions/formgrader/templates"
MARKUP = "<img src=x onerror=window.pwned=1>"
SCRIPT = '\\";window.pwned=1;var y="'  # for a name within the quotes of JavaScript
# Imports a file that nbgrader has under another name, so that the page is an error in any case
BROKEN = "formgrade_404.tpl"
PAGES = sorted(path.name for path in TEMPLATES.glob("*.tpl") if path.name != BROKEN)
NAMES = {"student_id", "assignment_id", "notebook_id", "current_config", "exchange", "course_dir"}


@pytest.mark.parametrize("template", PAGES)
@pytest.mark.parametrize("name", [MARKUP, SCRIPT, "a\nb\u2028"])
def test_no_template_passes_markup_on(template, name):
    environment = Environment(loader=FileSystemLoader([str(TEMPLATES)]))
    handler = SimpleNamespace(settings={"nbgrader_jinja2_env": environment})
    resources = dict.fromkeys(("student", "last_name", "first_name", "filename"), name)
    resources |= {"index": 0, "total": 1, "notebook_path": name}
    values = dict.fromkeys(NAMES, name) | {"base_url": "", "resources": resources}
    page = render_escaped(handler, template, **values)
    assert MARKUP not in page and SCRIPT not in page
    for line in re.findall(r'^var \w+ = "(.*)$', page, re.MULTILINE):
        assert re.fullmatch(r'[^"\\\u2028]*";', line), line


def test_every_template_quotes_what_it_fills_in_by_double_quotes():
    """So an apostrophe can stand as it is, and the pages of o'brien@uni.edu find their owner."""
    for path in TEMPLATES.glob("*.tpl"):
        assert not re.search(r"'[^'\"\n{}<>]*\{\{", path.read_text("utf-8")), path.name


def test_names_and_comments_are_text_on_the_pages_of_a_notebook():
    notebook = room.nbformat.v4.new_notebook(
        cells=[room.new_markdown_cell("x", metadata={"nbgrader": {"comment": f"**no** {MARKUP}"}})]
    )
    marked, resources = without_markup(notebook, {"student": MARKUP, "index": 3, "last_name": None})
    assert "<img" not in resources["student"] and resources["index"] == 3
    comment = marked.cells[0].metadata.nbgrader.comment
    assert "<img" not in comment and "<strong>no</strong>" in comment
    assert Page.do  # which registers it for every page
