"""The site, built once by the commands of `make site`, served, and a browser that opens it."""

import json
import os
import shutil
import subprocess
import sys
import threading
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import axe_playwright_python
import pytest
from bs4 import BeautifulSoup
from playwright.sync_api import sync_playwright
from shared import made_once

ROOT = Path(__file__).parents[2]
ADDRESS = "https://github.com/some-one/a-course"
AXE = Path(axe_playwright_python.__file__).with_name("axe.min.js").read_text("utf-8")
CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "chrome"))), None)


@pytest.fixture(scope="session")
def site(tmp_path_factory):
    """The folder of the built site; processes that test side by side share one."""

    def make(folder):
        environment = {**os.environ, "RLCOURSE_REPOSITORY": ADDRESS}
        pages, extra, built = (str(folder / name) for name in ("pages", "extra", "html"))
        for words in (
            ["course/site/pages.py", pages, extra],
            ["-m", "sphinx", "-q", "-W", "--keep-going", "-c", "course/site", pages, built],
        ):
            done = subprocess.run(
                [sys.executable, *words], cwd=ROOT, env=environment, capture_output=True
            )
            assert done.returncode == 0, done.stderr.decode()

    return made_once(tmp_path_factory, "site", make) / "html"


@pytest.fixture(scope="session")
def soups(site):
    """{path: its parsed page} of every page."""
    return {
        str(path.relative_to(site)): BeautifulSoup(path.read_text("utf-8"), "html.parser")
        for path in sorted(site.rglob("*.html"))
    }


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


@pytest.fixture(scope="session")
def faults_of():
    """faults_of(page, address, width) → what is wrong with a page that a reader opens."""
    return _faults_of


def _faults_of(page, address: str, width: int) -> list[str]:
    asked, said = [], []
    page.on("request", lambda request: asked.append(request.url))
    page.on("console", lambda m: said.append(m.text) if m.type == "error" else None)
    page.on("pageerror", lambda e: said.append(str(e)))
    page.goto(address)
    here = (address[: address.index("/", len("http://"))], "data:")
    faults = [f"asks {url}" for url in asked if not url.startswith(here)] + said
    flat = page.evaluate(
        "[...document.querySelectorAll('.math math')]"
        ".filter(m => !m.getBoundingClientRect().height).map(m => m.textContent)"
    )
    faults += [f"a formula that is not drawn: {text}" for text in flat]
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
