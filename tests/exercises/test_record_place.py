"""Where progress is kept: on a borrowed machine in a place that lasts, or with a word about it."""

import pytest

from rlcourse import progress
from rlcourse.student import record


@pytest.fixture(autouse=True)
def nowhere(monkeypatch, tmp_path):
    for name in ("RLCOURSE_HOME", "COLAB_RELEASE_TAG", "COLAB_GPU"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(record, "DRIVE", tmp_path / "drive")
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setenv("USERPROFILE", str(tmp_path / "home"))


def test_on_a_machine_of_one_s_own_it_is_the_home_directory(tmp_path, monkeypatch):
    assert record.home() == tmp_path / "home" / ".rlcourse" and record.not_kept() == ""
    monkeypatch.setenv("COLAB_RELEASE_TAG", "x")
    monkeypatch.setenv("RLCOURSE_HOME", str(tmp_path / "mine"))
    assert record.home() == tmp_path / "mine" and record.not_kept() == ""


def test_colab_without_drive_says_that_it_forgets_and_with_drive_keeps(tmp_path, monkeypatch):
    monkeypatch.setenv("COLAB_RELEASE_TAG", "x")
    for shown in (repr(progress()), progress()._repr_html_()):
        assert "deletes this record" in shown and "drive.mount(" in shown
    (tmp_path / "drive").mkdir()
    assert record.home() == tmp_path / "drive" / "rlcourse"
    assert "deletes" not in repr(progress())
