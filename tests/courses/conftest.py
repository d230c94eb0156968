import subprocess
import sys

import pytest
from small_courses import forgotten_afterwards

from rlcourse.courses.creating import new_course


@pytest.fixture
def own(tmp_path, monkeypatch):
    """An own course as ``rlcourse new-course ours`` makes it: the folder of course.toml."""
    monkeypatch.delenv("RLCOURSE_COURSE", raising=False)
    with forgotten_afterwards("ours"):
        yield new_course(tmp_path / "ours") / "ours"


@pytest.fixture
def rlcourse(tmp_path, monkeypatch):
    """``rlcourse(*words, cwd=…)`` runs the command: (exit status, stdout, stderr)."""
    monkeypatch.delenv("RLCOURSE_COURSE", raising=False)
    monkeypatch.setenv("RLCOURSE_HOME", str(tmp_path / "home"))

    def call(*words, cwd=tmp_path):
        done = subprocess.run(
            [sys.executable, "-m", "rlcourse", *map(str, words)],
            cwd=cwd,
            capture_output=True,
            text=True,
            encoding="utf-8",
        )
        return done.returncode, done.stdout, done.stderr

    return call
