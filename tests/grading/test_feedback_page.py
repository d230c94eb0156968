"""The page that staff and students read, in a browser: no script, no picture, no foreign link."""

import re
import sys
from pathlib import Path

import nbgrader
import pytest
from nbformat.v4 import new_markdown_cell, new_notebook
from test_markdown import HOSTILE

from rlcourse.grading.pages.formulas import mathml
from rlcourse.grading.pages.markdown import harmless
from rlcourse.grading.pages.showing import FormulaExporter

sys.path.insert(0, str(Path(__file__).parents[1] / "browser"))
from lab_driver import FLAGS, chromium

pytestmark = [pytest.mark.browser, pytest.mark.slow]

TEMPLATES = Path(nbgrader.__file__).parent / "server_extensions/formgrader/templates"
HONEST = "# A title\n\n$a < b$, `x < y` and [a link](https://a.example/b?c=d&e=f) cost $5\n\n- one"


def feedback_page(texts: list[str]) -> str:
    """nbgrader's page of feedback on a notebook in which every text is an answer."""
    marks = {"solution": True, "grade": True, "score": 0, "points": 1, "comment": ""}
    cells = [
        new_markdown_cell(harmless(text), metadata={"nbgrader": {**marks, "grade_id": f"q{i}"}})
        for i, text in enumerate(texts)
    ]
    nbgrader_css = TEMPLATES.parent / "static/node_modules/bootstrap/dist/css"
    exporter = FormulaExporter(
        template_name="feedback",
        extra_template_basedirs=[str(TEMPLATES)],
        extra_template_paths=[str(nbgrader_css)],
    )
    scores = {"notebook": "02", "score": 0, "max_score": 1, "late_penalty": 0}
    return exporter.from_notebook_node(new_notebook(cells=cells), {"nbgrader": scores})[0]


@pytest.mark.skipif(not chromium(), reason="no Chromium")
def test_a_browser_finds_nothing_in_feedback_that_acts(tmp_path):
    from playwright.sync_api import sync_playwright

    (tmp_path / "page.html").write_text(feedback_page([*HOSTILE, HONEST]), "utf-8")
    asked, said = [], []
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium(), args=FLAGS)
        page = browser.new_page()
        page.on("dialog", lambda dialog: (said.append(dialog.message), dialog.dismiss()))
        page.route("**/*", lambda route: (asked.append(route.request.url), route.abort())
                   if not route.request.url.startswith("file:") else route.continue_())  # fmt: skip
        page.goto((tmp_path / "page.html").as_uri(), wait_until="load")
        for link in page.query_selector_all(".text_cell_render a"):
            link.dispatch_event("mouseover")
        inside = ".text_cell_render"
        links = page.eval_on_selector_all(f"{inside} a", "all => all.map(a => a.protocol)")
        tags = page.eval_on_selector_all(f"{inside} *", "all => all.map(e => e.localName)")
        last = page.eval_on_selector_all(inside, "all => all.at(-1).innerText")
        browser.close()
    assert said == []
    assert {*links} <= {"http:", "https:", "mailto:"} and "https:" in links
    assert not {"img", "script", "iframe", "svg", "style", "base", "object", "form"} & {*tags}
    assert asked == []  # not for MathJax either
    assert "𝑎 < 𝑏 , x < y and a link cost $5" in " ".join(last.split())
    assert "math" in tags


def test_every_formula_of_the_lessons_is_drawn():
    root = Path(__file__).parents[2] / "course"
    for path in (*root.glob("lessons/*/lesson.md"), root / "map.md"):
        text = re.sub(r"```.*?```", "", path.read_text("utf-8"), flags=re.S)
        formulas = re.findall(r"\$\$(.+?)\$\$|(?<!\\)\$([^$\n]+?)\$", text, flags=re.S)
        drawn = {tex: mathml(tex) for pair in formulas for tex in pair if tex}
        assert [tex for tex, how in drawn.items() if "<code>" in how or "\\" in how] == [], (
            path.name
        )


def test_a_lesson_s_picture_is_shown():
    cell = new_markdown_cell("![a curve](attachment:opening.png)")
    cell.attachments = {"opening.png": {"image/png": "aGVsbG8="}}
    page = FormulaExporter().from_notebook_node(new_notebook(cells=[cell]))[0]
    assert 'src="data:image/png;base64,aGVsbG8="' in page and 'alt="a curve"' in page
