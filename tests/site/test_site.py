"""The site: built from what is there, whole by itself, legible for everyone at every width.

It is built once, by the commands of `make site`; two pages are looked at in Chromium, and every
page with ``--every-page``.
"""

import json
import os
import re
import shutil
import subprocess
import sys
import threading
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import unquote, urlsplit

import axe_playwright_python
import pytest
from bs4 import BeautifulSoup
from filelock import FileLock
from playwright.sync_api import sync_playwright

from rlcourse import exercises

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[2]
ADDRESS = "https://github.com/some-one/a-course"
AXE = Path(axe_playwright_python.__file__).with_name("axe.min.js").read_text("utf-8")
LESSONS = sorted(path.stem for path in (ROOT / "solutions").glob("*.ipynb"))
TWO = ["lessons/06_grpo.html", "reference/algorithms.html"]
CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "chrome"))), None)


@pytest.fixture(scope="session")
def site(tmp_path_factory):
    """The folder of the built site; processes that test side by side share one."""
    shared = tmp_path_factory.getbasetemp()
    shared = (shared.parent if "PYTEST_XDIST_WORKER" in os.environ else shared) / "site"
    with FileLock(f"{shared}.lock"):
        if not (shared / "done").exists():
            environment = {**os.environ, "RLCOURSE_REPOSITORY": ADDRESS}
            pages, extra, built = (str(shared / name) for name in ("pages", "extra", "html"))
            for words in (
                ["course/site/pages.py", pages, extra],
                ["-m", "sphinx", "-q", "-W", "--keep-going", "-c", "course/site", pages, built],
            ):
                done = subprocess.run(
                    [sys.executable, *words], cwd=ROOT, env=environment, capture_output=True
                )
                assert done.returncode == 0, done.stderr.decode()
            (shared / "done").touch()
    return shared / "html"


@pytest.fixture(scope="session")
def soups(site):
    """{path: its parsed page} of every page."""
    return {
        str(path.relative_to(site)): BeautifulSoup(path.read_text("utf-8"), "html.parser")
        for path in sorted(site.rglob("*.html"))
    }


def test_every_link_leads_somewhere(site, soups):
    """Files and places on pages, of links as of pictures; llms.txt, too."""
    ids = {page: {tag["id"] for tag in soup.find_all(id=True)} for page, soup in soups.items()}
    broken = []
    for page, soup in soups.items():
        for tag in soup.find_all(["a", "img", "link", "script"]):
            address = urlsplit(tag.get("href") or tag.get("src") or "")
            if address.scheme or address.netloc:
                continue
            path = (site / page).parent / unquote(address.path) if address.path else site / page
            name = os.path.relpath(path, site)
            if not path.is_file() or (
                address.fragment and name in ids and unquote(address.fragment) not in ids[name]
            ):
                broken.append(f"{page}: {address.geturl()}")
    text = (site / "llms.txt").read_text("utf-8")
    broken += [name for name in re.findall(r"\]\((.*?)\)", text) if not (site / name).is_file()]
    assert not broken


def test_pages_load_nothing_from_elsewhere(site, soups):
    for page, soup in soups.items():
        loaded = [tag["src"] for tag in soup.find_all(src=True)]
        loaded += [tag["href"] for tag in soup.find_all("link")]
        assert not [name for name in loaded if urlsplit(name).netloc], page
    for sheet in site.rglob("*.css"):
        assert not re.search(r"url\(['\"]?(https?:)?//", sheet.read_text("utf-8")), sheet


@pytest.mark.parametrize("lesson", LESSONS)
def test_a_lesson_is_open_and_its_answers_are_not(soups, lesson):
    """Opens on Colab; as many stubs as exercises, hints folded; what is drawn is described."""
    page, solutions = soups[f"lessons/{lesson}.html"], soups[f"solutions/{lesson}.html"]
    opened = [a["href"] for a in page.find_all("a", string="Open in Colab")]
    notebook = f"some-one/a-course/blob/main/notebooks/{lesson}/{lesson}.ipynb"
    assert opened == [f"https://colab.research.google.com/github/{notebook}"]
    mine = [exercise for exercise in exercises.all() if exercise.lesson == lesson]
    assert mine
    stubs = [pre for pre in page.find_all("pre") if "raise NotImplementedError" in pre.text]
    assert len(stubs) == len(mine)
    hints = page.select(".hints details")
    assert len(hints) == sum(len(exercise.hints) for exercise in mine)
    assert not [hint for hint in hints if hint.has_attr("open")]
    for exercise in mine:
        assert solutions.find(id=exercise.name.replace("_", "-")), exercise.name
    assert "raise NotImplementedError" not in solutions.text
    for picture in page.select(".shown img"):
        assert len(picture["alt"]) > 10


def test_texts_of_the_course_and_docstrings_are_pages(soups):
    for path in (ROOT / "course").glob("*.md"):
        name = "instructors" if path.stem == "README" else path.stem
        assert f"course/{name}.html" in soups
    described = soups["reference/algorithms.html"].find(id="rlcourse.algorithms.grpo.grpo_loss")
    assert "DeepSeekMath" in described.find_parent("dl").text


@pytest.fixture(scope="module")  # no longer: its event loop runs in this thread until it ends
def browser():
    if CHROMIUM is None:
        pytest.skip("needs Chromium")
    with sync_playwright() as playwright:
        options = {"executable_path": CHROMIUM, "args": ["--no-sandbox", "--disable-gpu"]}
        yield playwright.chromium.launch(**options)


@pytest.fixture(scope="session")
def served(site):
    """The site's address on this machine."""

    class Quiet(SimpleHTTPRequestHandler):
        def log_message(self, *_):
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=site))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()


def faults_of(page, address: str, width: int) -> list[str]:
    """What is wrong with a page that a reader opens."""
    asked, said = [], []
    page.on("request", lambda request: asked.append(request.url))
    page.on("console", lambda m: said.append(m.text) if m.type == "error" else None)
    page.on("pageerror", lambda e: said.append(str(e)))
    page.goto(address)
    page.evaluate("window.MathJax && MathJax.startup && MathJax.startup.promise")
    here = (address[: address.index("/", len("http://"))], "data:")
    faults = [f"asks {url}" for url in asked if not url.startswith(here)] + said
    formulas, typeset, wrong = (
        len(page.query_selector_all(what))
        for what in (".math", ".math mjx-container", "mjx-merror")
    )
    if typeset < formulas or wrong:
        faults.append(f"{formulas} formulas, {typeset} typeset, {wrong} with an error")
    if (wide := page.evaluate("document.documentElement.scrollWidth")) > width:
        faults.append(f"{wide} pixels wide on {width}")
    page.evaluate(AXE)
    found = json.loads(
        page.evaluate(
            "axe.run({resultTypes: ['violations']}).then(r => JSON.stringify(r.violations))"
        )
    )
    for violation in found:
        if violation["impact"] in ("serious", "critical"):
            where = violation["nodes"][0]
            faults.append(
                f"{violation['id']}: {where['html'][:200]} {where['failureSummary'][:300]}"
            )
    return faults


@pytest.mark.browser
@pytest.mark.parametrize(("width", "theme"), [(1400, "light"), (390, "dark")])
def test_pages_are_whole_and_legible(request, browser, served, soups, width, theme):
    """No request to elsewhere, no error, no formula that fails, no serious finding of axe."""
    every = request.config.getoption("--every-page")
    themes = ("light", "dark") if every else (theme,)
    found = {}
    for scheme in themes:
        context = browser.new_context(
            viewport={"width": width, "height": 900}, color_scheme=scheme, reduced_motion="reduce"
        )
        for name in soups if every else TWO:
            page = context.new_page()
            if faults := faults_of(page, f"{served}/{name}", width):
                found[f"{name}, {scheme}"] = faults
            page.close()
        context.close()
    assert not found, json.dumps(found, indent=1)


@pytest.mark.browser
def test_the_search_finds_a_lesson(browser, served):
    page = browser.new_page()
    page.goto(f"{served}/search.html?q=importance+weights")
    page.wait_for_selector("#search-results li a")
    found = [a.get_attribute("href") for a in page.query_selector_all("#search-results li a")]
    page.close()
    assert any("lessons/04_importance_sampling.html" in address for address in found)
