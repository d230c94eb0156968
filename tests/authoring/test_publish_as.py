"""One command fills in the repository's address, in a copy of the repository."""

import json
import shutil
from pathlib import Path

import pytest
import yaml

from rlcourse import published
from rlcourse.authoring import build
from rlcourse.authoring.publishing import publish_as
from rlcourse.errors import UserError

ROOT = Path(__file__).parents[2]
FORK = "https://github.com/someone/their.course"
HELD = ("rlcourse/published.py", "CITATION.cff")


@pytest.fixture
def copy(tmp_path, monkeypatch):
    """A repository with what holds the address, and lesson 00."""
    monkeypatch.setattr(published, "REPOSITORY", "")
    (tmp_path / "rlcourse").mkdir()
    for name in HELD:
        shutil.copy(ROOT / name, tmp_path / name)
    kept = ("course/nbgrader_config.py", "course/lessons", "notebooks", "solutions")
    for name in kept:
        source, target = ROOT / name, tmp_path / name
        target.parent.mkdir(exist_ok=True)
        if source.is_dir():
            shutil.copytree(source, target, ignore=shutil.ignore_patterns("0[1-9]_*", "1?_*"))
        else:
            shutil.copy(source, target)
    settings = 'notebooks = "../notebooks"\nsolutions = "../solutions"\n'
    (tmp_path / "course" / "course.toml").write_text(f'{settings}lessons = ["00_start_here"]\n')
    return tmp_path


def outputs(root: Path) -> list:
    (path,) = root.glob("solutions/*.ipynb")
    cells = json.loads(path.read_text("utf-8"))["cells"]
    return [cell["outputs"] for cell in cells if cell["cell_type"] == "code"]


def test_the_address_stands_in_all_that_holds_it(copy):
    before = outputs(copy)
    publish_as(FORK + ".git", copy, progress=False)
    namespace: dict = {}
    exec((copy / "rlcourse/published.py").read_text("utf-8"), namespace)
    assert namespace["REPOSITORY"] == FORK
    assert namespace["project_urls"]()["Issues"] == f"{FORK}/issues"
    assert yaml.safe_load((copy / "CITATION.cff").read_text("utf-8"))["repository-code"] == FORK
    notebooks = [*copy.glob("notebooks/*/*.ipynb"), *copy.glob("solutions/*.ipynb")]
    assert len(notebooks) == 2
    for path in notebooks:
        text = path.read_text("utf-8")
        assert f"git+{FORK}@main" in text and "colab.research.google.com/github/someone" in text
    assert outputs(copy) == before and any(before)  # nothing was executed, nothing lost
    assert build(root=copy, check=True, progress=False) == []
    other = "https://github.com/other/course"
    publish_as(other, copy, progress=False)  # it takes the first one's place
    assert not [p for p in copy.rglob("*") if p.is_file() and FORK.encode() in p.read_bytes()]


@pytest.mark.parametrize("address", ["", "owner/name", "https://github.com/owner", "http://a/b/c"])
def test_what_is_no_repository_is_refused(copy, address):
    with pytest.raises(UserError, match=r"write https://github\.com/OWNER/NAME"):
        publish_as(address, copy, progress=False)
    assert (copy / "rlcourse/published.py").read_bytes() == (
        ROOT / "rlcourse/published.py"
    ).read_bytes()


def test_an_unpublished_course_has_no_addresses_in_its_metadata(monkeypatch):
    monkeypatch.setattr(published, "REPOSITORY", "")
    assert published.project_urls() == {}
