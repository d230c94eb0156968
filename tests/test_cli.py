"""What the command line says of itself: whole descriptions, recipes, settings, a second Ctrl-C."""

import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

import rlcourse
from rlcourse.cli import GROUPS, app
from rlcourse.errors import UserError
from rlcourse.training import load_recipe, shipped_recipes
from rlcourse.training.faults.catalog import FAULTS
from rlcourse.training.recipes.listing import about


def said(*words: str) -> str:
    result = CliRunner().invoke(app, words)
    assert result.exit_code == 0, result.output
    return result.output


def test_no_description_of_a_command_is_cut():
    listing = said("--help").partition("  --help ")[2]
    assert "..." not in listing
    commands = re.findall(r"^  ([a-z-]+)  +[A-Z]", listing, re.MULTILINE)
    assert {"lab", "train", "doctor", "gpu-check"} <= set(commands)
    assert len(commands) == len(set(commands)) == len(app.registered_commands)


def test_commands_are_listed_for_whom_they_are():
    listing = said("--help")
    groups = re.split(r"^(For .*):$", listing, flags=re.MULTILINE)[1:]
    listed = dict(zip(groups[::2], groups[1::2], strict=True))
    assert list(listed) == list(GROUPS)
    assert "  lab " in listed["For students"]
    assert "  grade " in listed["For instructors (grading)"]
    assert "  prove " in listed["For authors and contributors"]


def test_version_is_the_package_s():
    assert said("--version") == f"rlcourse {rlcourse.__version__}\n"


@pytest.mark.parametrize("wrong, right", [("larb", "lab"), ("trian", "train"), ("grad", "grade")])
def test_a_wrong_command_suggests_the_nearest_right_one(wrong, right):
    result = CliRunner().invoke(app, [wrong])
    assert result.exit_code == 2 and f"Did you mean {right!r}" in result.output


def test_an_error_is_not_preceded_by_half_a_progress_bar(tmp_path):
    pytest.importorskip("nbgrader")
    result = CliRunner().invoke(app, ["grade", "77", "--course", str(tmp_path)])
    assert isinstance(result.exception, UserError) and result.output == ""


def test_every_recipe_is_listed_with_a_sentence():
    text = said("train")
    for name in shipped_recipes():
        assert re.search(rf"^{re.escape(name)}  +[A-Zμ].*\.$", text, re.MULTILINE), name
        assert 10 < len(about(name)) < 160, about(name)


def test_every_setting_of_a_recipe_is_listed_with_its_value():
    text = said("train", "grpo", "--settings")
    for name, field in load_recipe("grpo").settings().items():
        assert re.search(
            rf"^{name} .*{re.escape(field.description)}( \(not with --engine trl\))?$", text, re.M
        )
    assert not re.search(r"^(gamma|clip_high|pairs) ", text, re.M), "of other methods"
    assert re.search(r"^steps +100 ", text, re.MULTILINE)


def test_every_fault_is_listed_with_what_it_does_to_the_metrics():
    text = said("train", "--faults")
    for name, fault in FAULTS.items():
        assert f"{name}: {fault.what}" in text and fault.signal in text


INTERRUPTED = """
import os, signal
from rlcourse import cli
def work(): os.kill(os.getpid(), signal.SIGINT); signal.pause()
cli.app.command("work")(work)
import sys; sys.argv = ["rlcourse", "work"]
cli.main()
"""


@pytest.mark.slow
@pytest.mark.skipif(os.name != "posix", reason="sends itself a POSIX signal")
def test_a_ctrl_c_that_nobody_else_hears_ends_with_a_sentence_and_130():
    """The second one of two is such: the first is heard by whatever is at work, which lets go."""
    done = subprocess.run(
        [sys.executable, "-c", INTERRUPTED],
        capture_output=True,
        text=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
    )
    assert done.returncode == 130
    assert re.fullmatch(r"rlcourse: interrupted .*kept\n", done.stderr), done.stderr


def test_one_is_singular(tmp_path, monkeypatch):
    from rlcourse.words import counted, points_of

    assert points_of(3 / 14, 3) == "0.21 of 3 points" and points_of(1, 1) == "1 of 1 point"
    assert [counted(n, "point") for n in (0, 0.5, 1, 1.0, 2)] == [
        *("0 points", "0.5 points", "1 point", "1 point", "2 points")
    ]
    monkeypatch.setenv("RLCOURSE_HOME", str(tmp_path))
    text = said("progress")
    assert "0 of 1 exercise " in text and not re.search(r"\b1 (points|attempts|exercises)", text)


def test_without_jupyterlab_a_sentence_says_how_to_get_it(monkeypatch):
    from rlcourse.installed import install_command
    from rlcourse.lab import jupyter

    monkeypatch.setattr(jupyter.importlib.util, "find_spec", lambda name: None)
    with pytest.raises(UserError, match=r"the lessons are in mine") as raised:
        jupyter.open_lab(Path("mine"), "02_policy_gradient")
    assert install_command("lab") in str(raised.value)


WITHOUT = """
import sys
for name in ("nbgrader", "jupyterlab", "jupytext", "markdown_it", "ipywidgets"):
    sys.modules[name] = None  # an import of it fails
from rlcourse.authoring.runner import check_notebook
from rlcourse.authoring.sample import write_sample_submission
from rlcourse import check, progress, ready
from rlcourse.training import inspect_rollouts, train
import rlcourse.cli, rlcourse.plots
"""


@pytest.mark.slow
def test_lessons_checks_and_training_need_no_extra():
    done = subprocess.run([sys.executable, "-c", WITHOUT], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
