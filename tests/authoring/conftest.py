import shutil

import pytest
from fixture_course import LESSON, NAME, REPOSITORY, declare


@pytest.fixture
def registry():
    return [declare("score_function"), declare("reinforce_loss")]


@pytest.fixture
def course(tmp_path):
    """The root of a course repository that holds the fixture lesson and the real configuration."""
    lessons = tmp_path / "course" / "lessons"
    lessons.mkdir(parents=True)
    (lessons / f"{NAME}.md").write_text(LESSON)
    shutil.copy(REPOSITORY / "course" / "nbgrader_config.py", tmp_path / "course")
    return tmp_path
