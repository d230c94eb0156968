"""Notebooks where there is no clone: a plain kernel that has torch, another folder, no widgets."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import nbformat
import pytest
from building import ROOT, environment, run
from nbclient import NotebookClient
from shared import one_in

import rlcourse
from rlcourse import published
from rlcourse.authoring import hosted
from rlcourse.lab.lessons import course_lessons

OURS = ("PYTHON", "RLCOURSE", "VIRTUAL_ENV")  # variables that the other Python must not see
FORK = "https://github.com/someone/rl"


@pytest.fixture
def hosted_python(tmp_path):
    """An interpreter whose environment has all packages but the course, and no ipywidgets."""
    python, site = environment(tmp_path / "env")
    for name in ("ipywidgets", "nbgrader", "jupyterlab"):
        (site / f"{name}.py").write_text(f"raise ModuleNotFoundError(name={name!r})\n")
    return python


@pytest.mark.slow
def test_a_notebook_installs_the_course_and_runs_as_on_colab(archives, hosted_python, tmp_path):
    """Opened by itself in an empty folder; the first cell gets the wheel's name in place of the
    address that a published course has there."""
    place = tmp_path / "content"
    place.mkdir()
    wheel = shutil.copy(archives[1], place)
    node = nbformat.read(course_lessons()["00_start_here"], as_version=4)
    code = [cell for cell in node.cells if cell.cell_type == "code"]
    assert hosted.is_setup(code[0])
    code[0].source = re.sub(r'set_up\("[^"]*"', f'set_up("{Path(wheel).name}"', code[0].source)
    stub = next(cell for cell in code if cell.id == "mean_reward")
    stub.source = stub.source.replace("raise NotImplementedError", "return rewards.mean()")
    node.cells.append(nbformat.v4.new_code_cell("from rlcourse.policy import Policy"))
    code.append(node.cells[-1])
    environment = {
        **{k: v for k, v in os.environ.items() if not k.startswith(OURS)},
        "HOME": str(tmp_path / "home"),
        "IPYTHONDIR": str(tmp_path / "ipython"),
        "JUPYTER_PATH": str(tmp_path / "jupyter"),
        **{"PIP_NO_DEPS": "1", "PIP_NO_INDEX": "1", "PIP_DISABLE_PIP_VERSION_CHECK": "1"},
    }
    spec = tmp_path / "jupyter" / "kernels" / "hosted"
    run(
        hosted_python,
        *("-m", "ipykernel", "install", "--prefix", tmp_path / "prefix", "--name", "hosted"),
        cwd=tmp_path,
    )
    shutil.copytree(tmp_path / "prefix" / "share" / "jupyter" / "kernels" / "hosted", spec)
    before = os.environ.get("JUPYTER_PATH")
    os.environ["JUPYTER_PATH"] = str(tmp_path / "jupyter")
    try:
        client = NotebookClient(
            node,
            timeout=300,
            kernel_name="hosted",
            resources={"metadata": {"path": str(place)}},
            skip_cells_with_tag="",
        )
        client.execute(env=environment)
    finally:
        os.environ.pop("JUPYTER_PATH")
        if before is not None:
            os.environ["JUPYTER_PATH"] = before
    shown = "\n".join(
        str(output.get("text") or output.get("data", {}).get("text/plain", ""))
        for cell in code
        for output in cell.outputs
    )
    assert "✓ mean_reward" in shown and "mean reward of the group: 0.75" in shown
    where = run(hosted_python, "-c", "import rlcourse; print(rlcourse.__file__)", cwd=place)
    assert Path(where.strip()).is_relative_to(tmp_path)
    kinds = {kind for cell in code for o in cell.outputs for kind in o.get("data", {})}
    assert "application/vnd.jupyter.widget-view+json" not in kinds
    assert [o.text for cell in code[1:] for o in cell.outputs if o.get("name") == "stderr"] == []


@pytest.mark.parametrize("name", course_lessons())
def test_every_lesson_opens_with_the_set_up_cell_and_imports_no_widgets(name):
    for path in (course_lessons()[name], ROOT / "solutions" / f"{name}.ipynb"):
        code = [c for c in nbformat.read(path, as_version=4).cells if c.cell_type == "code"]
        assert [hosted.is_setup(cell) for cell in code] == [True] + [False] * (len(code) - 1)
        assert code[0].source == hosted.setup_cell().source
        assert not code[0].outputs
        text = "\n".join(cell.source for cell in code)
        assert "ipywidgets" not in text and "nbgrader" not in text


def said_by_the_cell(python, code: str, place: Path) -> tuple[bool, str]:
    """Whether the cells below it run, and what it says, as IPython shows it."""
    cells = [code, "print('the next cell')"]
    program = (
        "import sys\n"
        "from IPython.core.interactiveshell import InteractiveShell\n"
        f"shell = InteractiveShell()\nfor cell in {cells!r}:\n"
        "    if not shell.run_cell(cell).success: break\n"
    )
    kept = {k: v for k, v in os.environ.items() if not k.startswith(OURS)}
    quick = {"PIP_NO_INDEX": "1", "PIP_DISABLE_PIP_VERSION_CHECK": "1", "PIP_RETRIES": "0"}
    done = subprocess.run(
        [python, "-c", program],
        capture_output=True,
        text=True,
        cwd=place,
        env={**kept, **quick, "IPYTHONDIR": str(place / "ipython")},
    )
    assert done.returncode == 0 and not done.stderr, done.stderr
    lines = done.stdout.strip().splitlines()
    goes_on = lines[-1:] == ["the next cell"]
    return goes_on, "\n".join(lines[: len(lines) - goes_on])


def test_the_set_up_cell_does_nothing_where_the_course_is_installed(tmp_path):
    assert said_by_the_cell(sys.executable, hosted.setup_cell().source, tmp_path) == (True, "")


@pytest.mark.parametrize("address", one_in(2, ["", "https://localhost:1/some-one/a-course"]))
def test_where_nothing_can_be_installed_one_sentence_says_so_and_it_stops(
    address, hosted_python, tmp_path, monkeypatch
):
    """No traceback and no list of what pip tried; nothing that it says is in the folded cell."""
    monkeypatch.setattr(published, "REPOSITORY", address)
    goes_on, said = said_by_the_cell(hosted_python, hosted.setup_cell().source, tmp_path)
    assert not goes_on
    assert "Traceback" not in said and "torch" not in said and len(said.splitlines()) <= 2
    if address:
        assert f"could not be installed from git+{address}@main: check" in said
        assert "pip said: " in said
    else:
        assert said == hosted.NOWHERE


def test_an_older_course_than_the_notebook_s_is_named(tmp_path, monkeypatch):
    monkeypatch.setattr(rlcourse, "__version__", "99.1")
    goes_on, said = said_by_the_cell(sys.executable, hosted.setup_cell().source, tmp_path)
    monkeypatch.undo()
    assert goes_on and said == hosted.OLDER.format(rlcourse.__version__, "99.1")


def test_one_setting_gives_the_installation_and_the_links(monkeypatch):
    monkeypatch.setattr(published, "REPOSITORY", FORK)
    assert f'set_up("git+{FORK}@main", ' in hosted.setup_cell().source
    text = hosted.with_links("# Title\n\nWords.", "02_policy_gradient")
    heading, _, links, *rest = text.split("\n")
    assert heading == "# Title" and rest == ["", "Words."]
    notebook = "blob/main/notebooks/02_policy_gradient/02_policy_gradient.ipynb"
    assert f"(https://colab.research.google.com/github/someone/rl/{notebook})" in links
    assert f"?src=https://github.com/someone/rl/{notebook})" in links
    assert "(https://codespaces.new/someone/rl)" in links
