"""``rlcourse lab`` opens JupyterLab for any user, quietly, and ends it when it ends itself."""

import os
import re
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from pathlib import Path

import pytest

from rlcourse.lab import jupyter
from rlcourse.lab.lessons import copy_lessons

NAME = "02_policy_gradient"


@pytest.mark.parametrize("user, allowed", [(0, True), (1000, False)])
def test_root_may_open_the_lessons_and_nobody_else_is_treated_as_root(monkeypatch, user, allowed):
    monkeypatch.setattr(os, "geteuid", lambda: user, raising=False)
    words = jupyter.command(Path("mine"), NAME, browser=False, port=8888)
    assert ("--allow-root" in words) == allowed
    assert any(word.endswith(f"/lesson/{NAME}/{NAME}.ipynb") for word in words)


def test_students_settings_come_before_all_others(monkeypatch):
    monkeypatch.setenv("JUPYTER_CONFIG_PATH", "theirs")
    path = jupyter.environment()["JUPYTER_CONFIG_PATH"]
    assert path.split(os.pathsep) == [str(jupyter.CONFIG), "theirs"]


def answer(address: str, process: subprocess.Popen) -> str:
    """The page at an address that is printed a moment before anybody listens there."""
    browser = urllib.request.build_opener(urllib.request.HTTPCookieProcessor())
    while process.poll() is None:
        try:
            with browser.open(address, timeout=60) as page:
                return page.read().decode()
        except urllib.error.URLError as error:
            assert isinstance(error.reason, ConnectionRefusedError), error
            time.sleep(0.1)
    raise AssertionError("JupyterLab has ended")


@pytest.mark.slow
@pytest.mark.skipif(os.name != "posix", reason="sends POSIX signals")
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_the_printed_address_is_the_lesson_s_and_jupyterlab_ends_with_the_command(tmp_path, number):
    """Before the signal the lesson answers at the address, afterwards nobody listens there."""
    copy_lessons(tmp_path / "mine")
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    words = ["lab", "02", "--no-browser", "--dir", str(tmp_path / "mine"), f"--port={port}"]
    home = {"HOME": str(tmp_path), "JUPYTER_RUNTIME_DIR": str(tmp_path / "runtime")}
    process = subprocess.Popen(
        [sys.executable, "-m", "rlcourse", *words],
        env=os.environ | home,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    try:
        said = iter(process.stdout.readline, "")
        address = next(filter(None, (re.search(r"http://\S+token=\w+", line) for line in said)))
        assert f"/lesson/{NAME}/{NAME}.ipynb?token=" in address[0]
        text = answer(address[0], process)
        assert '"@jupyter/nbgrader' in text.partition('"disabledExtensions"')[2][:400]
        process.send_signal(number)
        process.stdout.read()
        assert process.wait(60) == 0
        with pytest.raises(OSError), socket.create_connection(("127.0.0.1", port), timeout=5):
            pass
    finally:
        process.terminate()  # a killed one could not take JupyterLab along
        process.stdout.close()
        process.wait(60)
