import pytest
from fixture_course import LESSON, NAME, declare
from small_courses import write_course


@pytest.fixture
def registry():
    return [declare("score_function"), declare("reinforce_loss")]


@pytest.fixture
def course(tmp_path):
    """The root of a course repository that holds the fixture lesson and the real configuration."""
    write_course(tmp_path / "course", {NAME: LESSON})
    return tmp_path
