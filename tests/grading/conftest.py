import shutil

import classroom
import pytest


@pytest.fixture(scope="session")
def template(tmp_path_factory):
    """A course that is built once; tests take copies of it."""
    root = tmp_path_factory.mktemp("template")
    return classroom.make_course(root)


@pytest.fixture
def course(template, tmp_path):
    """A fresh course directory with nothing handed in."""
    shutil.copytree(template.parent, tmp_path / "repository")
    return tmp_path / "repository" / "course"
