"""Images built and run by a container engine, where one answers: ``pytest --images``."""

import shutil
import subprocess
import uuid
from pathlib import Path

import pytest

ENGINES = ("docker", "podman")


def engine() -> str | None:
    """A container engine that answers, or None."""
    for name in filter(shutil.which, ENGINES):
        if subprocess.run([name, "info"], capture_output=True).returncode == 0:
            return name
    return None


def output(words: list[str], cwd: Path | None = None) -> str:
    """What a command prints; an AssertionError with the end of that if it fails."""
    done = subprocess.run(words, cwd=cwd, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
    return done.stdout + done.stderr


class Image:
    """An image of a file in a folder; a test that uses one is skipped without ``--images``."""

    def __init__(self, request, folder: Path, *options: str):
        if not request.config.getoption("--images"):
            pytest.skip("an image takes minutes and the network: --images builds it")
        name = engine()
        if name is None:
            pytest.skip(f"no container engine answers here ({' or '.join(ENGINES)})")
        self.engine, self.tag = name, f"rlcourse-test:{uuid.uuid4().hex[:8]}"
        output([name, "build", *options, "-t", self.tag, "."], cwd=folder)
        request.addfinalizer(self.remove)

    def run(self, *words: str, options: tuple[str, ...] = ()) -> str:
        """What a command prints in a container without a network."""
        start = [self.engine, "run", "--rm", "--network=none", *options, self.tag]
        return output([*start, *words])

    def remove(self) -> None:
        subprocess.run([self.engine, "image", "rm", "--force", self.tag], capture_output=True)
