"""Advice on installing an extra fits how this copy was installed, and names no stranger's package.

Copies are pretended: a distribution's folder with METADATA and, by PEP 610, direct_url.json.
"""

import importlib.metadata
import json
import re
import subprocess
from pathlib import Path

import pytest
from shared import lock

from rlcourse import installed, published
from rlcourse.errors import UserError
from rlcourse.installed import install_command, needing

ROOT = Path(__file__).parents[1]
METADATA = """\
Metadata-Version: 2.4
Name: rlcourse
Version: 0.1.0
"""
COMMIT = "0123456789abcdef0123456789abcdef01234567"


@pytest.fixture
def copy(tmp_path, monkeypatch):
    """``copy(direct_url)`` pretends that rlcourse was installed so, and not as a clone."""

    def pretend(direct_url: dict | None) -> None:
        folder = tmp_path / "site" / "rlcourse-0.1.0.dist-info"
        folder.mkdir(parents=True)
        (folder / "METADATA").write_text(METADATA)
        if direct_url is not None:
            (folder / "direct_url.json").write_text(json.dumps(direct_url))
        found = importlib.metadata.PathDistribution(folder)
        monkeypatch.setattr(importlib.metadata, "distributions", lambda **_: iter([found]))

    monkeypatch.setattr(installed, "CLONE", tmp_path)
    monkeypatch.setattr(published, "REPOSITORY", "")
    return pretend


AGAIN = "install the course again from where you got it, with its extra `lora`"


def test_a_wheel_in_a_folder_that_others_may_not_enter_counts_as_gone(copy, tmp_path, monkeypatch):
    """As on a hub, where an administrator installs for everybody from a folder of their own."""
    wheel = tmp_path / "locked" / "rlcourse-0.1.0-py3-none-any.whl"
    copy({"url": wheel.as_uri(), "archive_info": {}})
    lock(wheel.parent, monkeypatch)
    assert install_command("lora") == AGAIN


WEB = "https://example.org/owner/name"
VCS = {"vcs": "git", "commit_id": COMMIT, "requested_revision": "main"}
INSIDE = {"vcs_info": VCS, "subdirectory": "course"}
FROM_GIT = f"rlcourse[lora] @ git+{WEB}@{COMMIT}"


@pytest.mark.parametrize(
    ("place", "facts", "advice"),
    [
        ("my clone", {"dir_info": {"editable": True}}, 'pip install -e "{place}[lora]"'),
        ("my clone", {"dir_info": {}}, 'pip install "{place}[lora]"'),
        ("there.whl", {"archive_info": {}}, 'pip install "{place}[lora]"'),
        ("gone.whl", {"archive_info": {}}, AGAIN),
        (f"{WEB}.whl", {"archive_info": {}}, 'pip install "rlcourse[lora] @ {place}"'),
        (WEB, {"vcs_info": VCS}, f'pip install "{FROM_GIT}"'),
        (WEB, INSIDE, f'pip install "{FROM_GIT}#subdirectory=course"'),
    ],
)
def test_advice_names_where_this_copy_came_from(copy, tmp_path, place, facts, advice):
    (tmp_path / "my clone").mkdir()
    (tmp_path / "there.whl").touch()
    local = "://" not in place
    copy({"url": (tmp_path / place).as_uri() if local else place} | facts)
    assert install_command("lora") == advice.format(place=tmp_path / place if local else place)


def test_where_nothing_is_known_the_published_address_is_named(copy, monkeypatch):
    """As after an installation from a package index, where the name may be anybody's."""
    copy(None)
    assert install_command("lora") == AGAIN
    monkeypatch.setattr(published, "REPOSITORY", "https://github.com/owner/name")
    source = "git+https://github.com/owner/name@main"
    assert install_command("lora") == f'pip install "rlcourse[lora] @ {source}"'


def test_a_clone_that_is_only_on_the_path_is_installed_editable(copy, tmp_path):
    copy(None)
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
    '"rlcourse[lab,grade,tensorboard,trl,lora,adam8bit,site]",',
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
