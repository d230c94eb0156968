"""``rlcourse new-course``: what it refuses, and what it leaves behind."""

import pytest
from shared import lock

from rlcourse.courses import current
from rlcourse.courses.creating import new_course
from rlcourse.errors import UserError
from rlcourse.lab.lessons import default_directory


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("our-course", "lower-case letters, digits and _, such as our_course, and not 'our-"),
        ("class", "such as our_course, and not 'class'"),
        ("torch", "there is a Python package 'torch' already"),
    ],
)
def test_a_name_that_no_package_can_have_is_refused(name, reason, tmp_path):
    with pytest.raises(UserError) as refused:
        new_course(tmp_path / name)
    assert reason in str(refused.value) and "\n" not in str(refused.value)
    assert list(tmp_path.iterdir()) == []


def test_what_is_there_already_is_left_alone(tmp_path):
    (tmp_path / "ours").mkdir()
    with pytest.raises(UserError, match="already exists: choose another folder"):
        new_course(tmp_path / "ours")
    assert list((tmp_path / "ours").iterdir()) == []


def test_every_name_of_the_template_becomes_the_course_s(own):
    for path in own.parent.rglob("*"):
        assert "own_course" not in path.name
        assert not path.is_file() or "own_course" not in path.read_text("utf-8")
    assert (own.parent / ".gitignore").is_file()
    assert 'course_id = "ours"' in (own / "nbgrader_config.py").read_text()


def test_no_course_is_in_a_working_directory_that_this_user_may_not_look_into(
    tmp_path, monkeypatch
):
    """As after `sudo -u somebody` in one's own folder."""
    monkeypatch.delenv("RLCOURSE_COURSE", raising=False)
    monkeypatch.chdir(tmp_path)
    lock(tmp_path, monkeypatch)
    assert current().name == "rlcourse" and default_directory().name


@pytest.mark.slow
def test_the_command_says_what_to_do_next_and_that_works(rlcourse, tmp_path):
    status, said, _ = rlcourse("new-course", "ours")
    assert status == 0 and "rlcourse prove explained_variance" in said
    status, said, _ = rlcourse("build", "01", cwd=tmp_path / "ours")
    assert status == 0 and said.startswith("01_critics: 2 files written")
    _, said, _ = rlcourse("prove", "explained_variance", "--seeds", "1", cwd=tmp_path / "ours")
    assert said.startswith("✓ explained_variance: 8 mistakes and 2 alternatives")
    status, _, complaint = rlcourse("new-course", "ours")
    assert status == 1 and complaint.count("\n") == 1
