"""Links between lessons work where they are followed: in a student's copy and among solutions."""

import re
from pathlib import Path

import nbformat
import pytest

from rlcourse.lab.lessons import copy_lessons, course_lessons

REPOSITORY = Path(__file__).parents[2]
LINK = re.compile(r"\]\((?!https?://|#|attachment:)([^)\s#]+)")


def links(path: Path) -> list[str]:
    cells = nbformat.read(path, as_version=4).cells
    return [link for c in cells if c.cell_type == "markdown" for link in LINK.findall(c.source)]


@pytest.fixture(scope="module")
def copy(tmp_path_factory):
    return copy_lessons(tmp_path_factory.mktemp("mine")).directory


@pytest.mark.parametrize("name", course_lessons())
def test_links_of_a_lesson_lead_to_what_jupyterlab_shows(copy, name):
    path = copy / name / f"{name}.ipynb"
    for link in links(path):
        target = (path.parent / link).resolve()
        assert target.is_file() and copy.resolve() in target.parents, link


@pytest.mark.parametrize("name", course_lessons())
def test_links_of_a_solution_lead_to_a_file(name):
    for link in links(REPOSITORY / "solutions" / f"{name}.ipynb"):
        assert (REPOSITORY / "solutions" / link).is_file(), link


def test_lesson_00_links_to_every_other_lesson(copy):
    start, *others = course_lessons()
    found = {Path(link).stem for link in links(copy / start / f"{start}.ipynb")}
    assert found == set(others)
