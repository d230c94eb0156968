"""Start JupyterLab in a home of its own and drive it in headless Chromium."""

import json
import os
import secrets
import shutil
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from playwright.sync_api import Page, sync_playwright

FLAGS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]
START_SECONDS = 900  # all of these only so that what hangs ends
RUN_SECONDS = 1800


def chromium() -> str | None:
    """Path of an installed Chromium or Chrome."""
    names = ("chromium", "chromium-browser", "google-chrome", "chrome")
    return next(filter(None, map(shutil.which, names)), None)


@contextmanager
def jupyterlab(root: Path, home: Path) -> Iterator[str]:
    """JupyterLab over ``root``; yields its URL with the token. Settings live under ``home``."""
    token, port = secrets.token_hex(16), _free_port()
    environment = {
        **os.environ,
        "HOME": str(home),
        "JUPYTER_CONFIG_DIR": str(home / "config"),
        "JUPYTER_DATA_DIR": str(home / "data"),
        "JUPYTER_RUNTIME_DIR": str(home / "runtime"),
        "IPYTHONDIR": str(home / "ipython"),
        "RLCOURSE_HOME": str(home / "rlcourse"),
        "OMP_NUM_THREADS": "1",
        "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
    }
    options = [
        "--no-browser",
        "--allow-root",
        f"--ServerApp.port={port}",
        "--ServerApp.port_retries=0",
        f"--ServerApp.root_dir={root}",
        f"--IdentityProvider.token={token}",
        "--LabApp.check_for_updates_class=jupyterlab.NeverCheckForUpdate",
        "--LabApp.news_url=None",
    ]
    _write_settings(home / "config" / "lab" / "user-settings" / "@jupyterlab")
    log = (home / "jupyterlab.log").open("w")
    server = subprocess.Popen(
        [sys.executable, "-m", "jupyterlab", *options],
        env=environment,
        stdout=log,
        stderr=subprocess.STDOUT,
    )
    try:
        base = f"http://127.0.0.1:{port}"
        _wait_until_up(server, f"{base}/api/status?token={token}", home / "jupyterlab.log")
        yield f"{base}/lab?token={token}"
    finally:
        server.terminate()
        try:
            server.wait(20)
        except subprocess.TimeoutExpired:
            server.kill()
        log.close()


def _write_settings(folder: Path) -> None:
    """Keep cells off the screen in the page too, so that a test finds them; ask for no news."""
    settings = {
        "notebook-extension/tracker": {"windowingMode": "none"},
        "apputils-extension/notification": {"fetchNews": "false", "checkForUpdates": False},
    }
    for name, values in settings.items():
        path = folder / f"{name}.jupyterlab-settings"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(values))


def _free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


def _wait_until_up(server: subprocess.Popen, url: str, log: Path) -> None:
    deadline = time.monotonic() + START_SECONDS
    while time.monotonic() < deadline and server.poll() is None:
        try:
            with urllib.request.urlopen(url, timeout=5):
                return
        except (urllib.error.URLError, OSError):
            time.sleep(0.2)
    raise RuntimeError(f"JupyterLab did not start:\n{log.read_text()}")


def _end_kernels(base: str, token: str) -> None:
    with urllib.request.urlopen(f"{base}/api/sessions?{token}") as answer:
        sessions = json.load(answer)
    for session in sessions:
        address = f"{base}/api/sessions/{session['id']}?{token}"
        urllib.request.urlopen(urllib.request.Request(address, method="DELETE")).close()


@contextmanager
def browser_page() -> Iterator[Page]:
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium(), args=FLAGS)
        page = browser.new_page(viewport={"width": 1280, "height": 900})
        page.set_default_timeout(RUN_SECONDS * 1000)
        yield page
        browser.close()


class Notebook:
    """One notebook opened in a JupyterLab page."""

    def __init__(self, page: Page, lab_url: str, path: str):
        self.page = page
        base, _, token = lab_url.partition("?")
        _end_kernels(base.removesuffix("/lab"), token)  # of notebooks that tests are done with
        page.goto(f"{base}/tree/{path}?{token}&reset")
        page.wait_for_selector(".jp-Notebook .jp-CodeCell")
        self._wait_until_idle()

    def _wait_until_idle(self) -> None:
        """The status bar names a kernel only once it is connected; the notebook's own sign does not
        tell "idle" from "not started"."""
        idle = self.page.locator("#jp-main-statusbar").get_by_text("| Idle")
        idle.wait_for(timeout=RUN_SECONDS * 1000)

    def choose(self, menu: str, *path: str) -> None:
        """Click through a menu, as in ``choose("Run", "Run All Cells")``."""
        self.page.locator(".lm-MenuBar-itemLabel", has_text=menu).first.click()
        *submenus, last = path
        for name in submenus:
            self._item(name).hover()
        self._item(last).click()

    def _item(self, name: str):
        return self.page.locator(f'.lm-Menu-item .lm-Menu-itemLabel:text-is("{name}")').last

    def run_all(self) -> None:
        """Run every cell from the menu and wait until none is running; an error ends the run."""
        self.choose("Run", "Run All Cells")
        self.page.wait_for_function(
            """() => {
                const inputs = [...document.querySelectorAll('.jp-CodeCell .jp-InputPrompt')];
                const prompts = inputs.map(input => input.textContent).join(' ');
                return /\\[\\d+\\]/.test(prompts) && !prompts.includes('*');
            }""",
            timeout=RUN_SECONDS * 1000,
        )
        self._wait_until_idle()

    def outputs(self) -> str:
        """The text of all outputs."""
        return "\n".join(self.page.locator(".jp-OutputArea-output").all_inner_texts())

    def errors(self) -> list[str]:
        """Texts of error outputs and of anything on stderr."""
        mimes = ("application/vnd.jupyter.error", "application/vnd.jupyter.stderr")
        selector = ", ".join(f'.jp-OutputArea-output[data-mime-type="{mime}"]' for mime in mimes)
        return self.page.locator(selector).all_inner_texts()

    def pictures(self) -> int:
        """How many images the outputs show."""
        return self.page.locator(".jp-OutputArea-output img").count()

    def validate(self) -> str:
        """Press nbgrader's Validate button; returns what its dialog says, and closes it."""
        self.page.locator(".validate-button").first.click()
        dialog = self.page.locator(".jp-Dialog").first
        dialog.wait_for(timeout=RUN_SECONDS * 1000)
        return dialog.inner_text()

    def set_theme(self, name: str) -> None:
        """ "JupyterLab Light" or "JupyterLab Dark"."""
        self.choose("Settings", "Theme", name)
        light = "false" if "Dark" in name else "true"
        self.page.wait_for_selector(f'body[data-jp-theme-light="{light}"]', state="attached")
