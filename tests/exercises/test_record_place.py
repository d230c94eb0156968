"""Where progress is kept: at home, or on Colab in a place that lasts."""

import pytest

from rlcourse.student import record


@pytest.fixture(autouse=True)
def nowhere(monkeypatch, tmp_path):
    monkeypatch.delenv("RLCOURSE_HOME", raising=False)
    monkeypatch.setattr(record, "DRIVE", tmp_path / "drive")
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setenv("USERPROFILE", str(tmp_path / "home"))


def test_it_is_where_one_says_or_on_a_mounted_drive_or_at_home(tmp_path, monkeypatch):
    assert record.home() == tmp_path / "home" / ".rlcourse"
    (tmp_path / "drive").mkdir()
    assert record.home() == tmp_path / "drive" / "rlcourse"
    monkeypatch.setenv("RLCOURSE_HOME", str(tmp_path / "mine"))
    assert record.home() == tmp_path / "mine"
