"""Workflows, templates and texts for strangers: that they can be read, and say what is so."""

import json
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
import yaml
from safetensors.torch import load_file

import rlcourse
from rlcourse.policy.build_tiny import TINY

ROOT = Path(__file__).parents[1]
WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))
PYTHON = ROOT / ".github" / "actions" / "python" / "action.yml"  # a step that several jobs share
FORMS = [
    p for p in sorted((ROOT / ".github" / "ISSUE_TEMPLATE").glob("*.yml")) if p.stem != "config"
]
SYSTEMS = {"ubuntu-latest", "${{ matrix.os }}"}


def read(path: Path):
    return yaml.safe_load(path.read_text("utf-8"))


def text(name: str) -> str:
    return (ROOT / name).read_text("utf-8")


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.stem)
def test_workflows_may_only_read_and_end(path):
    workflow = read(path)
    assert workflow["permissions"] == {"contents": "read"}
    for name, job in workflow["jobs"].items():
        assert job["runs-on"] in SYSTEMS and job["timeout-minutes"] > 0, name
        for step in job["steps"]:
            assert ("uses" in step) != ("run" in step)


@pytest.mark.parametrize("path", [*WORKFLOWS, PYTHON], ids=lambda path: path.stem)
def test_actions_are_pinned_to_a_commit_and_say_its_version(path):
    """A tag can be moved to other code, a commit cannot; by the version, dependabot updates it."""
    uses = re.findall(r"\buses: (.*)", path.read_text("utf-8"))
    assert uses
    for action in uses:
        pinned = re.fullmatch(r"actions/[a-z-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+", action)
        assert pinned or (ROOT / action / "action.yml").is_file(), action


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.stem)
def test_workflows_make_what_there_is_to_make(path):
    made = re.findall(r"\bmake ([a-z-]+)", path.read_text("utf-8"))
    targets = re.findall(r"^([a-z-]+):", text("Makefile"), re.MULTILINE)
    assert set(made) <= set(targets)


def test_a_release_is_published_only_where_its_owner_asked_for_it():
    """The archives are those of the build, which has compared the tag with the version."""
    jobs = read(ROOT / ".github" / "workflows" / "release.yml")["jobs"]
    build, publish = jobs["build"], jobs["publish"]
    assert any("rlcourse.__version__" in step.get("run", "") for step in build["steps"])
    assert publish["needs"] == "build" and publish["if"] == "vars.PUBLISH == 'true'"
    assert publish["permissions"]["id-token"] == "write" and "permissions" not in build
    assert not re.search(r"secrets\.|password|token:", json.dumps(publish))


def test_the_site_is_built_for_pull_requests_and_published_from_main_only():
    workflow = read(ROOT / ".github" / "workflows" / "site.yml")
    triggers = workflow[True]  # YAML's word "on"
    assert "pull_request" in triggers and triggers["push"] == {"branches": ["main"]}
    assert workflow["jobs"]["publish"]["if"] == "github.event_name != 'pull_request'"
    assert "if" not in workflow["jobs"]["build"]


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.stem)
def test_workflows_name_tests_that_there_are(path):
    for name in re.findall(r"\btests/[\w/.]+", path.read_text("utf-8")):
        assert (ROOT / name).exists(), name


def test_oldest_python_of_the_workflows_is_the_oldest_that_is_promised():
    (path,) = (path for path in WORKFLOWS if path.stem == "test")
    versions = read(path)["jobs"]["fast"]["strategy"]["matrix"]["python"]
    project = tomllib.loads(text("pyproject.toml"))["project"]
    assert f">={versions[0]}" == project["requires-python"]


@pytest.mark.parametrize("path", FORMS, ids=lambda path: path.stem)
def test_issue_forms_are_complete(path):
    form = read(path)
    assert form["name"] and form["description"]
    asked = [item for item in form["body"] if item["type"] != "markdown"]
    assert all(item["attributes"]["label"] for item in asked)
    assert len({item["id"] for item in asked}) == len(asked) > 0


def test_the_dev_container_sets_up_what_make_does_and_keeps_progress():
    lines = text(".devcontainer/devcontainer.json").splitlines()
    container = json.loads("\n".join(line for line in lines if not line.startswith("//")))
    assert re.fullmatch(r"python:3\.\d+-\w+", container["image"])
    assert re.search(r"^\$\(VENV\)/\.course:", text("Makefile"), re.MULTILINE)
    assert "make .venv/.course" in container["postCreateCommand"]
    place = container["containerEnv"]["RLCOURSE_HOME"]  # a rebuilt container has a new home
    assert place.startswith("${containerWorkspaceFolder}/my-lessons/")


def test_pre_commit_has_the_ruff_of_the_lock():
    locked = re.search(r"^ruff==(.*)$", text("requirements.lock"), re.MULTILINE)[1]
    (ruff,) = (r for r in read(ROOT / ".pre-commit-config.yaml")["repos"] if "ruff" in r["repo"])
    assert ruff["rev"] == f"v{locked}"


def test_changelog_knows_this_version():
    changes = text("CHANGELOG.md")
    assert f"## {rlcourse.__version__}\n" in changes


@pytest.mark.skipif(sys.platform != "linux", reason="the layers are Linux's")
def test_security_promises_the_layers_that_there_are():
    from rlcourse.grading.confinement.isolation import LAYERS

    row = re.search(r"^\| Linux 5\.13.*\| \*(.*)\* \|$", text("SECURITY.md"), re.MULTILINE)
    assert row[1].split(", ") == list(LAYERS)


@pytest.mark.parametrize(
    "path",
    [
        *("my-lessons/01_policies/01_policies.ipynb", "course/.grading-secret", "runs/grpo-001/x"),
        *("course/grades.csv", "course/downloaded/02/archive/a.zip", "course/gradebook.db"),
        *("course/submitted/ada/02/02.ipynb", "dist/x.whl", "build/lib/x"),
    ],
)
def test_git_ignores_students_work_grades_and_secrets(path):
    words = ["git", "check-ignore", "--no-index", "--quiet", path]
    if subprocess.run(["git", "rev-parse"], cwd=ROOT, capture_output=True).returncode:
        pytest.skip("needs a git checkout: it asks git")
    assert subprocess.run(words, cwd=ROOT).returncode == 0


def test_texts_give_the_number_of_weights_in_the_file():
    weights = sum(t.numel() for t in load_file(TINY / "model.safetensors").values())
    texts = [*ROOT.glob("*.md"), *(ROOT / "course").rglob("*.md"), TINY / "README.md"]
    texts += (ROOT / "course" / "site").rglob("*.html")
    said = " ".join(" ".join(path.read_text("utf-8").split()) for path in texts)
    numbers = re.findall(r"(\d+) thousand weights|parameters \| ([\d,]+) ", said)
    assert len(numbers) >= 4
    assert set(numbers) == {(f"{weights / 1000:.0f}", ""), ("", f"{weights:,}")}


def test_texts_agree_on_how_long_the_quick_tests_take():
    texts = [path.read_text("utf-8") for path in [*ROOT.glob("*.md"), *ROOT.glob("course/*.md")]]
    said = [re.findall(r"quick tests, in ([\w\s]+?)\s+minutes", text) for text in texts]
    assert sum(map(len, said)) >= 3 and len({minutes for found in said for minutes in found}) == 1


def test_no_text_between_two_prices_is_taken_for_a_formula():
    """The web pages set what stands between two dollars: `\\$29` is a price."""
    formula = re.compile(r"(?<!\\)\$[0-9][^$\n]*[A-Za-z]{3,}[.,]? [A-Za-z]{3,}[^$\n]*(?<!\\)\$")
    guides = ["README.md", *(f"course/{path.name}" for path in (ROOT / "course").glob("*.md"))]
    for name in guides:
        prose = re.sub(r"^```.*?^```|`[^`\n]*`", "", text(name), flags=re.MULTILINE | re.DOTALL)
        assert not formula.search(prose), f"{name}: {formula.search(prose)[0]}"
