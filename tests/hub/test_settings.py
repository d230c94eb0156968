"""The hub's settings beside those that are there already, and what install.sh refuses."""

import shutil
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request

import pytest
from hub import SETTINGS
from traitlets import Dict, List
from traitlets.config import Configurable, PyFileConfigLoader

# As The Littlest JupyterHub has them before it reads jupyterhub_config.d
BEFORE = """
c = get_config()
c.JupyterHub.services = [{{"name": "cull-idle"}}]
c.JupyterHub.load_roles = [{{"name": "culls", "services": ["cull-idle"]}}]
c.JupyterHub.load_groups = {{"others": {{"users": ["zoe"]}}}}
"""
LOAD = """
c = get_config()
load_subconfig({settings!r})
c.JupyterHub.services.append({{"name": "later"}})
"""


class JupyterHub(Configurable):
    """What these settings are for, without a hub."""

    services = List().tag(config=True)
    load_roles = List().tag(config=True)
    load_groups = Dict().tag(config=True)


@pytest.mark.parametrize(("before", "named"), [(BEFORE, "grace heidi"), ("", "")])
def test_formgrader_is_added_to_what_the_hub_has(tmp_path, monkeypatch, before, named):
    monkeypatch.setenv("RLCOURSE_INSTRUCTORS", named)
    text = (before + LOAD).format(settings=str(SETTINGS / "jupyterhub_config.py"))
    (tmp_path / "config.py").write_text(text)
    config = PyFileConfigLoader("config.py", path=str(tmp_path)).load_config()
    hub = JupyterHub(config=config)
    services, roles = ({thing["name"] for thing in of} for of in (hub.services, hub.load_roles))
    assert services == {"rlcourse", "later"} | ({"cull-idle"} if before else set())
    assert roles == {"formgrade-rlcourse"} | ({"culls"} if before else set())
    assert hub.load_groups.pop("formgrade-rlcourse") == {"users": named.split()}
    assert hub.load_groups == ({"others": {"users": ["zoe"]}} if before else {})


def test_the_hub_s_first_question_is_answered_however_long_formgrader_takes(tmp_path, monkeypatch):
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    monkeypatch.setenv("RLCOURSE_GRADER_PORT", str(port))
    monkeypatch.setenv("RLCOURSE_GRADER_BIN", str(tmp_path))
    (tmp_path / "python").symlink_to(sys.executable)
    formgrader = tmp_path / "jupyterhub-singleuser"
    formgrader.write_text('#!/bin/sh\necho "$@" > became\n')
    formgrader.chmod(0o755)
    config = PyFileConfigLoader("jupyterhub_config.py", path=str(SETTINGS)).load_config()
    (service,) = JupyterHub(config=config).services
    running = subprocess.Popen(service["command"], cwd=tmp_path)
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        try:
            assert urllib.request.urlopen(service["url"], timeout=5).status == 200
            break
        except urllib.error.URLError:
            time.sleep(0.05)
    assert running.wait(timeout=60) == 0
    assert "ServerApp.root_dir" in (tmp_path / "became").read_text()


@pytest.mark.skipif(not shutil.which("sh"), reason="the script is for a shell")
@pytest.mark.parametrize("words", [(), ("python", "a.whl"), ("python", "a.whl", "b.whl", "lock")])
def test_two_wheels_in_a_folder_are_refused_before_anything_is_installed(tmp_path, words):
    done = subprocess.run(
        ["sh", str(SETTINGS / "install.sh"), *words], cwd=tmp_path, capture_output=True, text=True
    )
    assert (
        done.returncode == 2 and "three words" in done.stderr and f"got {len(words)}" in done.stderr
    )
    assert len(done.stderr.splitlines()) == 1 and not done.stdout and not list(tmp_path.iterdir())
