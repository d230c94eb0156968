"""Whose a file is, by the name that a learning platform gives it."""

import re
from types import SimpleNamespace

import pytest
from classroom import REPOSITORY


class Settings(SimpleNamespace):
    def __getattr__(self, name):
        setattr(self, name, Settings())
        return getattr(self, name)


@pytest.fixture(scope="module")
def pattern():
    settings = Settings()
    text = (REPOSITORY / "course" / "nbgrader_config.py").read_text()
    text = text.replace("import install", "import nothing")  # settings only
    exec(compile(text, "config", "exec"), {"get_config": lambda: settings})
    return settings.FileNameCollectorPlugin.named_regexp


@pytest.mark.parametrize(
    "name, student",
    [
        ("ada_02_policy_gradient.ipynb", "ada"),
        ("anna.maria-b_02_policy_gradient.ipynb", "anna.maria-b"),
        ("anna_maria_02_policy_gradient (1).ipynb", "anna_maria"),
        ("s01_02_policy_gradient.ipynb", "s01"),
        ("kimlee_98765_4321_02_policy_gradient-1.ipynb", "98765"),
        ("kimlee_LATE_98765_4321_02_policy_gradient.ipynb", "98765"),
        ("Jo Smith_12345_assignsubmission_file_02_policy_gradient.ipynb", "12345"),
        ("Jo Smith_12345_assignsubmission_file/02_policy_gradient.ipynb", "12345"),
        ("Jo Smith_12345_assignsubmission_file_/02_policy_gradient-2.ipynb", "12345"),
    ],
)
def test_the_student_and_the_lesson_are_read_off_the_name(pattern, name, student):
    found = re.match(pattern, f"/course/downloaded/02_policy_gradient/extracted/x_1/{name}")
    assert found["student_id"] == student
    assert found["file_id"] == "02_policy_gradient"


@pytest.mark.parametrize("name", ["__MACOSX/._ada_02_policy_gradient.ipynb", "notes.ipynb"])
def test_what_is_nobodys_is_skipped(pattern, name):
    assert not re.match(pattern, f"/downloaded/02_policy_gradient/extracted/x/{name}")
