"""``rlcourse lab`` opens JupyterLab for whoever asks, root in a container included."""

import os
from types import SimpleNamespace

import pytest
from typer.testing import CliRunner

from rlcourse import cli


@pytest.mark.parametrize("user, allowed", [(0, True), (1000, False)])
def test_root_may_open_the_lessons_and_nobody_else_is_treated_as_root(monkeypatch, user, allowed):
    commands = []

    def run(command, check):
        commands.append(command)
        return SimpleNamespace(returncode=0)

    monkeypatch.setattr(cli.subprocess, "run", run)
    monkeypatch.setattr(os, "geteuid", lambda: user)
    assert CliRunner().invoke(cli.app, ["lab", "02", "--no-browser"]).exit_code == 0
    (command,) = commands
    assert ("--allow-root" in command) == allowed
    assert any(word.endswith("02_policy_gradient.ipynb") for word in command)
