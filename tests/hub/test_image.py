"""The image for Kubernetes, built and run where a container engine is: ``pytest --images``.

What its steps install is also tried without one, by test_jupyterhub.py.
"""

import shutil
from pathlib import Path

import pytest
import yaml
from containers import Image

from rlcourse.grading.gradescope.archive import course_wheel

ROOT = Path(__file__).parents[2]
HUB = ROOT / "course" / "hub"


@pytest.fixture(scope="module")
def run(request, tmp_path_factory):
    """Runs a command in a container of the image, as its user; gives what was printed."""
    context = tmp_path_factory.mktemp("context")
    shutil.copytree(HUB, context / "course" / "hub")
    shutil.copy(ROOT / "requirements.lock", context)
    wheel, content = course_wheel()
    (context / "wheels").mkdir()
    (context / "wheels" / wheel).write_bytes(content)
    return Image(
        request, context, "-f", "course/hub/Dockerfile", "--build-arg", "WHEELS=wheels"
    ).run


@pytest.mark.slow
def test_a_student_s_server_starts_as_nobody_special(run):
    assert run("id", "-u").strip() == "1000"
    assert run("jupyterhub-singleuser", "--version").strip().startswith("5.")


@pytest.mark.slow
def test_lessons_are_copied_into_the_home_and_checked_there(run):
    """The command of kubernetes.yaml, and a check after it."""
    settings = yaml.safe_load((HUB / "kubernetes.yaml").read_text())
    shell, option, line = settings["singleuser"]["lifecycleHooks"]["postStart"]["exec"]["command"]
    notebook = "rlcourse-lessons/00_start_here/00_start_here.ipynb"
    said = run(shell, option, f"{line} && rlcourse check {notebook} --json")
    assert "mean_reward" in said and "Traceback" not in said
