"""Advice on installing an extra fits this copy, and names no stranger's package."""

import re
import subprocess
from pathlib import Path

import pytest

from rlcourse import installed, published
from rlcourse.errors import UserError
from rlcourse.installed import install_command, needing

ROOT = Path(__file__).parents[1]


def test_in_a_clone_it_is_the_clone_and_elsewhere_the_published_address(tmp_path, monkeypatch):
    monkeypatch.setattr(installed, "CLONE", tmp_path)
    monkeypatch.setattr(published, "REPOSITORY", "")
    again = "install the course again from where you got it, with its extra `lora`"
    assert install_command("lora") == again
    monkeypatch.setattr(published, "REPOSITORY", "https://github.com/owner/name")
    source = "git+https://github.com/owner/name@main"
    assert install_command("lora") == f'pip install "rlcourse[lora] @ {source}"'
    (tmp_path / "pyproject.toml").touch()
    assert install_command("lora") == f'pip install -e "{tmp_path}[lora]"'


def test_a_missing_package_is_asked_for_by_the_extra_that_has_it():
    for module in ("nbgrader", "nbgrader.api"):
        with (
            pytest.raises(UserError) as raised,
            needing("grade", "grading"),
        ):
            raise ModuleNotFoundError(name=module)
        words = "grading needs nbgrader, which is not installed: "
        assert str(raised.value) == words + install_command("grade")
    with pytest.raises(ModuleNotFoundError), needing("grade", "grading"):
        raise ModuleNotFoundError(name="rlcourse.nothing")  # a mistake of ours


# An extra of the bare name, or the bare name as what is to be installed. "NAME @ ADDRESS" is fine.
BARE = re.compile(
    r"rlcourse\[[\w ,{}]+\](?! @ )"
    r"|\b(?:pip[\d.]*|pipx|uv|conda|mamba)\s+(?:[\w-]+\s+)*?(?:install|add|run)\s"
    r"(?:[^\n;&|#`]*?[ \t])?[\"'\\]*rlcourse(?![\w./\[-]| @ )"
)
# Of the package itself, to itself.
OWN_EXTRAS = (
    '"rlcourse[lab,grade,tensorboard,trl,lora,gguf,adam8bit,site]",',
    'site = ["rlcourse[grade]", ',
    'vllm = ["rlcourse[trl]", ',
)


@pytest.mark.parametrize(
    "text, bare",
    [
        ("pip install rlcourse", True),
        ("uv pip install rlcourse==0.1.0", True),
        ('"pip install \\"rlcourse[lora]\\""', True),
        ("| `rlcourse[lab]` | JupyterLab |", True),
        ('pip install "rlcourse[lab] @ git+ADDRESS"', False),
        ("pip install -e . && rlcourse lab", False),
        ("pip install dist/rlcourse-0.1.0-py3-none-any.whl", False),
    ],
)
def test_bare_names_are_seen(text, bare):
    assert bool(BARE.search(text)) == bare


def test_nobody_is_sent_to_install_by_the_bare_name():
    """In code, guides, notebooks, workflows: the name is not ours on any package index."""
    words = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    listing = subprocess.run(words, cwd=ROOT, capture_output=True, text=True)
    if listing.returncode:
        pytest.skip("needs a git checkout: it reads the list of files")
    found = []
    for name in filter(None, listing.stdout.split("\0")):
        path = ROOT / name
        if path == Path(__file__) or not path.is_file():
            continue
        try:
            text = path.read_text("utf-8")
        except UnicodeDecodeError:
            continue  # weights, pictures
        for own in OWN_EXTRAS:
            text = text.replace(own, "")
        found += [f"{name}: {hit.group()}" for hit in BARE.finditer(text)]
    assert not found
