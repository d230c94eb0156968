"""What student code may read is listed; copies of the course and repositories are not, wherever."""

import os
import sys
import tempfile
from pathlib import Path

import classroom as room
import pytest

from rlcourse.exercises import all as all_exercises
from rlcourse.grading.confinement import isolation, visible
from rlcourse.grading.running.library import write_library
from rlcourse.grading.running.limits import Limits
from rlcourse.grading.running.sandbox import Sandbox
from rlcourse.grading.running.steps import Cell

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="there are no layers")

# Where a copy of the course has been found on real machines, below a directory of libraries
STRAYS = (
    "src/app/.git/HEAD",
    "src/app/tests/test_worked_numbers.py",
    "src/app/solutions/answers.ipynb",
    "rlcourse/algorithms/policies.py",
    "python3/dist-packages/rlcourse/algorithms/policies.py",
    "python3.99/site-packages/rlcourse/algorithms/policies.py",
    "python3.99/site-packages/rlcourse-0.1.0.dist-info/direct_url.json",
    "vendor/a/rlcourse-old/policies.py",
    "vendor/b/c/.hg/store",
    "node_modules/x/y.js",
)
READ_ALL = """
import os
for root, folders, files in os.walk("TOP"):
    for name in files:
        try: print(os.path.relpath(os.path.join(root, name), "TOP"), open(f"{root}/{name}").read())
        except OSError: pass
import numpy, pandas, sympy, xml.dom.minidom, zoneinfo
print(zoneinfo.ZoneInfo("Europe/Berlin"))
"""


@pytest.fixture
def machine(monkeypatch):
    """A directory of libraries in which copies of the course lie about."""
    with tempfile.TemporaryDirectory(prefix="rlcourse-test-") as name:
        top = Path(name)
        top.chmod(0o755)
        for path in (*STRAYS, "libfine.so"):
            (top / "lib" / path).parent.mkdir(parents=True, exist_ok=True)
            (top / "lib" / path).write_text("HIDDEN-TREASURE" if path in STRAYS else "fine")
        monkeypatch.setattr(visible, "LIBRARIES", (*visible.LIBRARIES, str(top / "lib")))
        for cached in (visible.readable_paths, visible.hidden_paths):
            cached.cache_clear()
        yield top
    for cached in (visible.readable_paths, visible.hidden_paths):
        cached.cache_clear()


@pytest.mark.slow
# Without the mount layer another user may not even enter the directory in which Python stands.
@pytest.mark.parametrize("off", [(), ("mount", "user"), ("landlock",)])
def test_stray_copies_of_the_course_are_out_of_sight(machine, off):
    write_library(machine / "library", [e for e in all_exercises() if e.lesson >= "02"])
    limits = Limits(step=60, submission=120)
    with Sandbox(machine / "library", machine / "server", refuse=off) as sandbox:
        if not {"mount", "landlock"} - set(off) <= sandbox.layers.standing:
            pytest.skip(f"missing here: {sandbox.layers.missing}")
        source = READ_ALL.replace("TOP", str(machine / "lib"))
        answer = room.run(sandbox, [Cell("read", source)], limits).cells["read"]
    assert answer.error is None
    assert answer.printed.splitlines() == ["libfine.so fine", "Europe/Berlin"]


def test_only_listed_packages_are_readable_and_never_the_course():
    names = {os.path.basename(path) for path in visible.readable_paths() if "-packages/" in path}
    assert {"torch", "numpy", "matplotlib", "IPython"} <= names
    assert not any("rlcourse" in name or name.endswith(".pth") for name in names)
    assert not {"pytest", "nbgrader", "playwright", "jupyterlab"} & names


def test_what_is_shown_may_lie_in_something_hidden_and_the_other_way_round():
    wanted = isolation.Confinement(
        readable=("/a", "/a/b/c", "/a/d", "/e", "/a/b/c/f"),
        hidden=("/a/b", "/a/b/c/f/g", "/z"),
        root="/r",
        scratch="/s",
    )
    assert isolation._from_outside_in(wanted) == [
        ("/a", True), ("/a/b", False), ("/a/b/c", True), ("/a/b/c/f/g", False), ("/e", True),
    ]  # fmt: skip
