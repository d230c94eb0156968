"""Everything that the course shows as HTML, as a browser lays it out: in JupyterLab, on the site.

Both have style sheets of their own for tables, code and links. What is asserted is what a reader
would see: where text stands, that no line is broken, that everything can be read.
"""

import importlib.util
import os
import shutil
import subprocess
import sys
from pathlib import Path

import axe_playwright_python
import nbformat
import pytest
from every_output import CELLS, executed
from lab_driver import Notebook, browser_page, chromium, jupyterlab
from nbformat.sign import NotebookNotary

pytestmark = [pytest.mark.slow, pytest.mark.browser]

ROOT = Path(__file__).parents[2]
HOME = "02_policy_gradient"
AXE = Path(axe_playwright_python.__file__).with_name("axe.min.js").read_text("utf-8")
SHOWN = [name for name in CELLS if name != "names"]

# {what is wrong: where}; `root` is the output of one cell.
FAULTS = """root => {
  const faults = [], seen = e => e.checkVisibility();
  const say = (what, e) => faults.push(what + ': ' + (e.textContent || e.tagName).slice(0, 60));
  for (const e of [root, ...root.querySelectorAll('*')].filter(seen)) {
    const style = getComputedStyle(e);
    const text = [...e.childNodes].some(n => n.nodeType == 3 && n.data.trim());
    const number = /^[-+−]?[\\d.]+(e-?\\d+)?$|^nan$/.test(e.textContent.trim());
    if (text && !e.closest('svg') && !number && !['left', 'start'].includes(style.textAlign))
      say('not at the left', e);
    if (e.tagName == 'TR' && style.backgroundColor != 'rgba(0, 0, 0, 0)') say('zebra', e);
    if (e.scrollWidth > e.clientWidth + 1 && style.display != 'inline' && !e.closest('svg'))
      say('wider than its place', e);
    if (style.whiteSpaceCollapse != 'collapse' && e.childElementCount == 0 && text) {
      const lines = e.textContent.split('\\n').length;
      const range = document.createRange();
      range.selectNodeContents(e);
      const tops = new Set([...range.getClientRects()].map(r => Math.round(r.top)));
      if (tops.size > lines && e.textContent.length < 25) say('a broken line', e);
    }
  }
  return faults;
}"""


@pytest.fixture(scope="module")
def notebook(tmp_path_factory):
    """All outputs, of a kernel that ran in a student's copy of a lesson."""
    if not chromium():
        reason = "no Chromium or Chrome on PATH: install one to look at outputs"
        pytest.fail(reason) if os.environ.get("CI") == "true" else pytest.skip(reason)
    root = tmp_path_factory.mktemp("lessons")
    shutil.copytree(ROOT / "notebooks", root, dirs_exist_ok=True)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("RLCOURSE_HOME", str(tmp_path_factory.mktemp("record")))
        made = executed(root / HOME)
    nbformat.write(made, root / HOME / "every_output.ipynb")
    return made, root


@pytest.fixture(scope="module")
def page():
    with browser_page() as page:
        yield page


@pytest.fixture(scope="module")
def lab(notebook, page, tmp_path_factory):
    """The notebook opened in JupyterLab, trusted, as who ran it sees it."""
    made, root = notebook
    home = tmp_path_factory.mktemp("home")
    (home / "data").mkdir()
    NotebookNotary(data_dir=str(home / "data")).sign(made)
    with jupyterlab(root, home) as url:
        yield Notebook(page, url, f"{HOME}/every_output.ipynb")


@pytest.fixture(scope="module")
def address(notebook, tmp_path_factory):
    """Of a page of the site that holds the same outputs."""
    spec = importlib.util.spec_from_file_location("site_pages", ROOT / "course/site/pages.py")
    pages = importlib.util.module_from_spec(spec)
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(ROOT / "course" / "site"))
        patch.setitem(sys.modules, "site_pages", pages)  # where dataclasses look
        spec.loader.exec_module(pages)
    folder = tmp_path_factory.mktemp("site")
    source, extra, built = (folder / name for name in ("pages", "extra", "html"))
    extra.mkdir()
    parts = ["# Every output"]
    for cell in notebook[0].cells:
        shown = "\n\n".join(pages.shown(output, extra) for output in cell.outputs)
        parts.append(f"## {cell.id}\n\n{shown}")
    pages.write(source / "index.md", "\n\n".join(parts))
    words = ["-m", "sphinx", "-q", "-c", "course/site", str(source), str(built)]
    done = subprocess.run([sys.executable, *words], cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return (built / "index.html").as_uri()


@pytest.fixture
def site(page, address):
    """That page, opened in a tab of its own."""
    tab = page.context.browser.new_page(viewport={"width": 1280, "height": 900})
    tab.goto(address)
    yield tab
    tab.close()


def contrast(page, root: str) -> list[str]:
    """What within `root` stands out too little from its background, by WCAG 2 AA."""
    page.evaluate(AXE)
    found = page.evaluate(
        "root => axe.run(root, {runOnly: ['color-contrast'], resultTypes: ['violations']})", root
    )
    return [node["html"][:120] for v in found["violations"] for node in v["nodes"]]


def picture(page, name: str) -> None:
    """Kept, if ``$RLCOURSE_SCREENSHOTS`` names a folder."""
    if folder := os.environ.get("RLCOURSE_SCREENSHOTS"):
        Path(folder).mkdir(parents=True, exist_ok=True)
        page.screenshot(path=Path(folder, f"{name}.png"), full_page=True)


@pytest.mark.parametrize("theme", ["Light", "Dark"])
def test_every_output_can_be_read_in_jupyterlab(lab, theme):
    lab.set_theme(f"JupyterLab {theme}")
    cells = lab.page.locator(".jp-CodeCell")
    for i, name in enumerate(CELLS):
        for output in cells.nth(i).locator(".jp-RenderedHTML").all():
            output.scroll_into_view_if_needed()
            picture(lab.page, f"{name}-{theme}")
            assert output.evaluate(FAULTS) == [], name
    assert contrast(lab.page, ".jp-Notebook") == []


@pytest.mark.parametrize("scheme, width", [("light", 1280), ("dark", 1280), ("light", 390)])
def test_every_output_can_be_read_on_the_site(site, scheme, width):
    site.emulate_media(color_scheme=scheme)
    site.set_viewport_size({"width": width, "height": 900})
    picture(site, f"site-{scheme}-{width}")
    outputs = site.locator(".shown").all()
    assert len(outputs) >= len(SHOWN)
    for output in outputs:
        assert output.evaluate(FAULTS) == []
    assert site.evaluate("document.documentElement.scrollWidth") <= width
    assert contrast(site, "article") == []


def test_hints_unfold_in_place_one_after_the_other(lab):
    cell = lab.page.locator(".jp-CodeCell").nth(list(CELLS).index("wrong"))
    for summary in ("A hint", "The next hint", "The next hint"):
        folded = cell.locator("details:not([open]) > summary:visible")
        assert folded.count() == 1 and folded.inner_text() == summary
        folded.click()
    assert cell.locator("details[open]").count() == 3
