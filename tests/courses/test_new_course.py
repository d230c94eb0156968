"""``rlcourse new-course``: what it refuses, and what it leaves behind."""

import tomllib

import pytest
from shared import lock

from rlcourse import published
from rlcourse.courses import creating, current
from rlcourse.courses.creating import new_course
from rlcourse.errors import UserError
from rlcourse.lab.lessons import default_directory


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("our-course", "lower-case letters, digits and _, such as our_course, and not 'our-"),
        ("1st", "such as our_course"),
        ("class", "a Python keyword"),
        ("match", "a Python keyword"),
        ("json", "there is a Python package 'json' already"),
        ("torch", "there is a Python package 'torch' already"),
        ("rlcourse", "there is a Python package 'rlcourse' already"),
    ],
)
def test_a_name_that_no_package_can_have_is_refused(name, reason, tmp_path):
    with pytest.raises(UserError) as refused:
        new_course(tmp_path / name)
    assert reason in str(refused.value) and "\n" not in str(refused.value)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("occupied", ["a file", "a folder"])
def test_what_is_there_already_is_left_alone(occupied, tmp_path):
    target = tmp_path / "ours"
    kept = target if occupied == "a file" else target / "kept"
    kept.parent.mkdir(exist_ok=True)
    kept.write_text("mine")
    with pytest.raises(UserError, match="already exists: choose another folder"):
        new_course(target)
    assert kept.read_text() == "mine" and list(tmp_path.iterdir()) == [target]


def test_a_disk_that_refuses_leaves_nothing_behind(tmp_path, monkeypatch):
    written = []

    def refuse(path, text):
        if len(written) == 5:
            raise OSError(28, "No space left on device")
        written.append(path)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)

    monkeypatch.setattr(creating, "_write", refuse)
    with pytest.raises(UserError, match="could not be written: No space left"):
        new_course(tmp_path / "ours")
    assert len(written) == 5 and list(tmp_path.iterdir()) == []


def test_every_name_of_the_template_becomes_the_course_s(own):
    for path in own.parent.rglob("*"):
        assert "own_course" not in path.name
        if path.is_file():
            text = path.read_text("utf-8")
            assert "own_course" not in text and "RLCOURSE" not in text
    assert (own.parent / ".gitignore").is_file()
    assert 'course_id = "ours"' in (own / "nbgrader_config.py").read_text()


def test_nobody_is_sent_to_an_index_by_the_bare_name(own, tmp_path, monkeypatch):
    def dependencies(directory):
        return tomllib.loads((directory / "pyproject.toml").read_text("utf-8"))["project"][
            "dependencies"
        ]

    assert dependencies(own.parent) == []
    monkeypatch.setattr(published, "REPOSITORY", "https://github.com/somebody/rlcourse")
    made = new_course(tmp_path / "theirs")
    assert dependencies(made) == ["rlcourse @ git+https://github.com/somebody/rlcourse@main"]
    assert "[rlcourse](https://github.com/somebody/rlcourse)" in (made / "README.md").read_text()


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
    assert said.startswith("✓ explained_variance: 8 mistakes and 3 alternatives")
    status, _, complaint = rlcourse("new-course", "ours")
    assert status == 1 and complaint.count("\n") == 1
