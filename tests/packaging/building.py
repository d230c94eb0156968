"""The course's archives, and environments that have the course's packages but not the course."""

import os
import subprocess
import sys
from pathlib import Path

from rlcourse.courses import shipped

ROOT = Path(__file__).parents[2]
SOURCES = ("pyproject.toml", "setup.py", "MANIFEST.in", "README.md", "LICENSE", "CHANGELOG.md")
SOURCES += ("CITATION.cff", "requirements.lock", "rlcourse", "notebooks", "course", "solutions")
LESSONS = [lesson.name for lesson in shipped().lessons]


def run(*words, cwd: Path, **environment: str) -> str:
    """What a command prints; its end is asserted. Nothing of this clone is on its path."""
    kept = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    done = subprocess.run(
        [str(word) for word in words],
        cwd=cwd,
        env={**kept, **environment},
        capture_output=True,
        text=True,
        encoding="utf-8",
    )
    assert done.returncode == 0, f"{words}\n{done.stdout[-2000:]}\n{done.stderr[-4000:]}"
    return done.stdout


def built(kind: str, tree: Path, out: Path) -> Path:
    """The sdist or the wheel of a source tree."""
    code = f"from setuptools import build_meta as b; print('FILE', b.build_{kind}({str(out)!r}))"
    said = run(sys.executable, "-c", code, cwd=tree)
    return out / said.rpartition("FILE ")[2].strip()


def environment(place: Path) -> tuple[Path, Path]:
    """(interpreter, its folder of packages) of a fresh environment that sees this one's packages.

    No network: what the course needs is taken from here; the course itself is not seen.
    """
    run(sys.executable, "-m", "venv", place, cwd=place.parent)
    python = place / ("Scripts/python.exe" if os.name == "nt" else "bin/python")
    code = "import sysconfig; print(sysconfig.get_path('purelib'))"
    site = Path(run(python, "-c", code, cwd=place).strip())
    others = [p for p in map(Path, sys.path) if p.name in ("site-packages", "dist-packages")]
    assert others, "this environment has its packages in an unknown place"
    (site / "others.pth").write_text("\n".join(map(str, others)) + "\n", encoding="utf-8")
    return python, site
