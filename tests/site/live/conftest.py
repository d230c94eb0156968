"""The modules of the page "Train one" as they are served, and a way to ask them in Node.js."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from filelock import FileLock

sys.path.insert(0, str(Path(__file__).parents[3] / "course/site"))
from live import build


@pytest.fixture(scope="session")
def built(tmp_path_factory):
    """A folder with the page's modules, its weights and jax-js; processes side by side share it."""
    if shutil.which("node") is None:
        pytest.skip("needs Node.js")
    shared = tmp_path_factory.getbasetemp()
    shared = (shared.parent if "PYTEST_XDIST_WORKER" in os.environ else shared) / "live"
    with FileLock(f"{shared}.lock"):
        if not shared.exists() and (missing := build.write_files(shared)):
            pytest.skip(missing)
    return shared


@pytest.fixture(scope="session")
def ask(built):
    """ask([{"ask": kind, …}, …]) → what the modules answer, in this order."""

    def answers(*asks: dict) -> list:
        done = subprocess.run(
            ["node", Path(__file__).with_name("answer.mjs"), built],
            input=json.dumps(asks, default=plain),
            capture_output=True,
            text=True,
        )
        assert done.returncode == 0, done.stderr[-2000:]
        return json.loads(done.stdout)

    return answers


def plain(tensor) -> dict:
    """A tensor as JSON, which knows no infinity."""
    numbers = tensor.double().flatten().tolist()
    return {"shape": list(tensor.shape), "data": [x if abs(x) < 1e300 else str(x) for x in numbers]}
