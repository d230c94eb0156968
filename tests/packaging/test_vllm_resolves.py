"""The extra `vllm` has a solution: asked of the registry, with nothing downloaded but metadata.

Run with the slow tests, because it asks the network; skipped without one.
"""

import re
import subprocess
import tomllib
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from uv import find_uv_bin

ROOT = Path(__file__).parents[2]
OFFLINE = re.compile(
    "dns error|Connection refused|Network is unreachable|timed out|error sending request"
    "|Failed to fetch|network was disabled"
)


def resolved(requirements: str) -> dict[str, str]:
    """Names and versions that would be installed on Linux with Python 3.11."""
    command = [find_uv_bin(), "pip", "compile", "--no-header", "--no-annotate", "--quiet", "-"]
    command += ["--python-version", "3.11", "--python-platform", "x86_64-manylinux_2_28"]
    found = subprocess.run(
        command, input=requirements, capture_output=True, text=True, timeout=600, cwd=ROOT
    )
    if found.returncode and OFFLINE.search(found.stderr):
        pytest.skip("the package registry cannot be reached")
    assert found.returncode == 0, found.stderr
    return dict(re.findall(r"^([\w.-]+)==(\S+)", found.stdout, re.MULTILINE))


@pytest.mark.slow
def test_the_extra_has_a_solution_within_our_ranges():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    extras = project["optional-dependencies"]
    declared = [*project["dependencies"], *extras["trl"], *extras["vllm"]]
    ours = [line for line in declared if not line.startswith("rlcourse")]
    found = resolved("\n".join(ours))
    for line in ours:
        requirement = Requirement(line)
        assert requirement.specifier.contains(found[requirement.name.lower()]), line
