"""The doctor's advice can be followed: it names extras and packages that there are."""

import importlib.metadata
import os
import re
import sys
import tomllib
from pathlib import Path

import pytest
import torch
from packaging.requirements import Requirement

from rlcourse import doctor

ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
EXTRAS = PROJECT["optional-dependencies"]


def metadata_of_pyproject(monkeypatch):
    """Let the doctor read what pyproject.toml says now, whenever the package was installed."""
    lines = list(PROJECT["dependencies"])
    for extra, requirements in EXTRAS.items():
        lines += [f'{line}; extra == "{extra}"' for line in requirements]

    monkeypatch.setattr(importlib.metadata, "requires", lambda name: lines)


def nothing_installed(name):
    raise importlib.metadata.PackageNotFoundError(name)


def test_only_extras_that_exist_and_bring_the_package_are_advised(monkeypatch):
    metadata_of_pyproject(monkeypatch)
    monkeypatch.setattr(importlib.metadata, "version", nothing_installed)
    findings = {finding.name: finding for finding in doctor._packages()}
    optional = {name: f.advice for name, f in findings.items() if f.state == "absent"}
    extras = [line for name, lines in EXTRAS.items() if name != "test" for line in lines]
    others = {Requirement(line).name for line in extras} - {"rlcourse"}  # an extra within another
    assert others == set(optional)
    assert {"jupyterlab", "nbgrader", "peft", "trl"} < set(optional)
    for name, advice in optional.items():
        (extra,) = re.findall(r"\[(\w+)\]", advice)
        assert name in {Requirement(line).name for line in EXTRAS[extra]}, advice
    needed = {Requirement(line).name for line in PROJECT["dependencies"]}
    assert {name for name, f in findings.items() if f.state == "missing"} == needed
    assert "rlcourse" not in findings


def test_a_course_that_was_not_installed_is_missing(monkeypatch):
    monkeypatch.setattr(importlib.metadata, "requires", nothing_installed)
    (finding,) = [f for f in doctor.examine() if f.group == "packages"]
    assert (finding.name, finding.state) == ("rlcourse", "missing")
    assert finding.advice.startswith(f"pip install {ROOT}, in the environment of {sys.executable}")


def test_a_version_outside_of_the_range_is_missing(monkeypatch):
    metadata_of_pyproject(monkeypatch)
    monkeypatch.setattr(importlib.metadata, "version", lambda name: "0.0.1")
    torch = next(finding for finding in doctor._packages() if finding.name == "torch")
    assert torch.state == "missing" and "0.0.1, but" in torch.found
    assert torch.advice.startswith('pip install "torch')


def test_where_grading_cannot_run_the_doctor_says_so_in_one_line(monkeypatch):
    """As on Windows, which lacks the modules that confining student code needs."""
    monkeypatch.setitem(sys.modules, "resource", None)
    for name in ("isolation", "probing"):
        monkeypatch.delitem(sys.modules, f"rlcourse.grading.confinement.{name}", raising=False)
    (finding,) = list(doctor._isolation())
    assert finding.state == "absent" and finding.advice == "grade on Linux"


def test_every_extra_that_a_text_or_a_message_advises_exists():
    texts = [ROOT / "README.md", *ROOT.glob("course/**/*.md")]
    written = [
        names
        for path in texts
        for names in re.findall(r"(?:rlcourse|\.)\[([\w, ]+)\]", path.read_text("utf-8"))
    ]
    called = [
        names
        for path in (ROOT / "rlcourse").rglob("*.py")
        for names in re.findall(r"(?:needing|install_command)\([\"'](\w+)", path.read_text("utf-8"))
    ]
    assert written and called
    assert {extra.strip() for names in written + called for extra in names.split(",")} <= set(
        EXTRAS
    )


@pytest.fixture
def a_card(tmp_path, monkeypatch):
    """A machine whose driver knows a GPU that PyTorch cannot use."""
    command = tmp_path / "nvidia-smi"
    command.write_text("#!/bin/sh\necho Tesla T4\n")
    command.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}{os.pathsep}{os.environ['PATH']}")
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)


@pytest.mark.skipif(os.name == "nt", reason="the pretended nvidia-smi is a shell script")
@pytest.mark.parametrize(
    ("cuda", "reason"),
    [("13.0", "does not work with CUDA 13.0: update the driver"), (None, "built without CUDA")],
)
def test_a_gpu_that_lies_idle_is_said(a_card, monkeypatch, cuda, reason):
    monkeypatch.setattr(torch.version, "cuda", cuda)
    found = {finding.name: finding for finding in doctor._machine()}["GPU"]
    assert (found.state, found.found) == ("absent", "Tesla T4")
    assert "PyTorch cannot use the Tesla T4 of this machine" in found.advice
    assert reason in found.advice
