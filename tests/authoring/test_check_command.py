"""``rlcourse check`` in a workflow: exit codes, JSON, and the file that the guide says to copy."""

import json
import re
from pathlib import Path

import pytest
import yaml
from test_runner import VERDICT, graded
from typer.testing import CliRunner

from rlcourse.authoring.runner import Report, Row
from rlcourse.cli import app

nbformat = pytest.importorskip("nbformat")
GUIDE = Path(__file__).parents[2] / "course" / "in_class.md"


@pytest.fixture(scope="module")
def notebook(tmp_path_factory):
    """Four of five points, which is 80 %."""
    from nbformat.v4 import new_code_cell, new_notebook

    path = tmp_path_factory.mktemp("check") / "02_policy_gradient.ipynb"
    cells = [graded("right", "verdict('right', 1.0)"), graded("wrong", "verdict('wrong', 0.0)", 1)]
    nbformat.write(new_notebook(cells=[new_code_cell(VERDICT), *cells]), path)
    return path


def run(*words):
    return CliRunner().invoke(app, ["check", *map(str, words)])


def test_json_is_all_that_is_printed(notebook):
    done = run(notebook, "--json", "--fail-under", 80)
    assert done.exit_code == 0, done.output
    found = json.loads(done.stdout)
    assert (found["points"], found["possible"], found["percent"]) == (4.0, 5.0, 80.0)
    assert found["passed"] is False
    statuses = {row["exercise"]: row["status"] for row in found["exercises"]}
    assert statuses == {"right": "passed", "wrong": "wrong"}


def test_too_few_points_and_no_notebook_are_told_apart(notebook, tmp_path):
    few = run(notebook, "--fail-under", 80.5)
    assert getattr(few.exception, "exit_code", None) == 3
    assert str(few.exception) == "4 of 5 points are 80.0 %, and --fail-under asks for 80.5 %"
    assert "right" in few.stdout  # the table, all the same
    assert getattr(run(tmp_path / "none.ipynb").exception, "exit_code", None) == 1
    assert run(notebook, "--fail-under", 101).exit_code == 2


@pytest.mark.parametrize(("status", "percent"), [("passed", 100.0), ("wrong", 0.0)])
def test_a_notebook_whose_checks_give_no_points_passes_or_does_not(status, percent):
    assert Report(Path("x"), (Row("f", status, 0.0, 0.0),)).percent == percent


def test_the_workflow_of_the_guide_runs_the_command_as_it_is(notebook, monkeypatch):
    text = re.search(r"```yaml\n(name: Check\n.*?)```", GUIDE.read_text("utf-8"), re.DOTALL)[1]
    workflow = yaml.safe_load(text)
    assert workflow["permissions"] == {"contents": "read"}
    (job,) = workflow["jobs"].values()
    for action in re.findall(r"uses: (.*)", text):
        assert re.fullmatch(r"actions/[a-z-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+", action), action
    (line,) = [s["run"] for s in job["steps"] if s.get("run", "").startswith("rlcourse ")]
    monkeypatch.chdir(notebook.parent)
    done = CliRunner().invoke(app, line.split()[1:])
    assert done.exit_code == 0, done.output
