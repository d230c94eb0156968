"""Requirements: ranges in pyproject.toml and environment.yml, exact versions in the lock alone."""

import tomllib
from pathlib import Path

import yaml
from packaging.requirements import Requirement

ROOT = Path(__file__).parents[2]


def project() -> dict:
    return tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]


def requirements(lines) -> dict[str, str]:
    """{name: specifier} of requirement strings; options and the project itself left out."""
    parsed = [Requirement(line) for line in lines if not line.startswith("-")]
    return {r.name.lower().replace("_", "-"): str(r.specifier) for r in parsed}


def test_conda_environment_is_in_step_with_pyproject():
    environment = yaml.safe_load((ROOT / "environment.yml").read_text("utf-8"))
    (pip,) = (entry["pip"] for entry in environment["dependencies"] if isinstance(entry, dict))
    assert requirements(pip) == requirements(project()["dependencies"])
    assert pip[-1] == '-e ".[lab,grade]"'  # as make installs it
    assert f"python{project()['requires-python']}" in environment["dependencies"]


def test_exact_versions_stand_in_the_lock_alone():
    """An existing torch, as in hosted notebooks, is kept."""
    declared = [*project()["dependencies"]]
    for extra in project()["optional-dependencies"].values():
        declared += extra
    specifiers = [s for line in declared for s in Requirement(line).specifier]
    assert len(specifiers) > 10
    assert not [str(s) for s in specifiers if s.operator in ("==", "===")]


def test_there_is_one_version_of_the_project():
    import rlcourse

    settings = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
    assert settings["project"]["dynamic"] == ["version", "urls"]
    assert settings["tool"]["setuptools"]["dynamic"]["version"]["attr"] == "rlcourse.__version__"
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text("utf-8"))
    assert citation["version"] == rlcourse.__version__


def test_lock_fulfils_every_requirement():
    lines = (ROOT / "requirements.lock").read_text("utf-8").splitlines()
    locked = requirements(line for line in lines if line and not line.startswith("#"))
    declared = [*project()["dependencies"]]
    for extra in project()["optional-dependencies"].values():
        # vLLM gets an environment of its own: test_vllm_resolves.py
        declared += [line for line in extra if not line.startswith(("rlcourse", "vllm"))]
    for line in declared:
        requirement = Requirement(line)
        version = locked[requirement.name.lower().replace("_", "-")].removeprefix("==")
        assert requirement.specifier.contains(version), f"{line}, but locked is {version}"
