"""What students with a terminal put into nbgrader's exchange, and what is collected of it."""

import os
import time
from datetime import UTC, datetime
from pathlib import Path

import pytest
from nbgrader.coursedir import CourseDirectory
from traitlets.config import Config

from rlcourse.grading.books.due import written
from rlcourse.grading.platforms import exchange as arriving
from rlcourse.grading.platforms.exchange import Collect, last_change

LESSON = "02_policy_gradient"
TIME = "2026-10-01 21:00:00 UTC"
NOTEBOOK = f"{LESSON}.ipynb"


@pytest.fixture
def exchange(tmp_path):
    """``collect()`` brings what is handed in below ``inbound`` to ``submitted``."""
    place = tmp_path / "exchange" / "rlcourse" / "inbound"
    place.mkdir(parents=True)
    return place


def handed_in(inbound: Path, student: str, when: str = TIME, text: str = "{}") -> Path:
    folder = inbound / f"{student}+{LESSON}+{when}+abc"
    folder.mkdir()
    (folder / NOTEBOOK).write_text(text)
    (folder / "timestamp.txt").write_text(when)
    return folder


def collect(inbound: Path) -> dict[str, str]:
    """{student: the notebook that was collected}."""
    root = inbound.parents[2]
    directory = CourseDirectory(
        root=str(root),
        course_id="rlcourse",
        assignment_id=LESSON,
        db_url=f"sqlite:///{root}/gradebook.db",
    )
    config = Config({"Exchange": {"root": str(inbound.parents[1])}})
    Collect(coursedir=directory, config=config).start()
    return {p.parents[1].name: p.read_text() for p in root.glob(f"submitted/*/*/{NOTEBOOK}")}


def test_what_belongs_to_another_user_is_not_collected_in_a_student_s_name(
    exchange, monkeypatch, caplog
):
    """It is the newest, and the student's own is collected all the same."""
    handed_in(exchange, "hal", text="hal's")
    forged = handed_in(exchange, "hal", "2026-10-01 22:00:00 UTC", "bob's")
    owners = {forged.name: "bob"}
    monkeypatch.setattr(arriving, "other_owner", lambda path: owners.get(path.name, "hal"))
    assert collect(exchange) == {"hal": "hal's"}
    assert "it is named after hal but belongs to bob" in caplog.text


def test_a_name_that_nbgrader_does_not_give_ends_no_collection(exchange, caplog):
    handed_in(exchange, "ada")
    for name in (f"bob+{LESSON}+some day+x", f"bob+{LESSON}+", f"cyd+{LESSON}+{TIME}+x"):
        (exchange / name).write_text("")
    assert collect(exchange) == {"ada": "{}"}
    assert caplog.text.count("is not one that nbgrader gives") == 2
    assert caplog.text.count("it is not a folder") == 1


def test_nothing_is_read_through_a_link_or_from_a_pipe(exchange, caplog):
    """The grader may read the solutions, and students know where they are."""
    (exchange.parent / NOTEBOOK).write_text("a solution")
    handed_in(exchange, "ada")
    (handed_in(exchange, "bob") / NOTEBOOK).unlink()
    (exchange / f"bob+{LESSON}+{TIME}+abc" / NOTEBOOK).symlink_to(exchange.parent / NOTEBOOK)
    (exchange / f"cyd+{LESSON}+{TIME}+abc").symlink_to(exchange.parent)
    (handed_in(exchange, "dan") / "deeper").mkdir()
    os.mkfifo(handed_in(exchange, "eve") / "pipe")
    assert collect(exchange) == {"ada": "{}", "dan": "{}"}
    for student, why in (
        ("bob", "is a symlink"),
        ("cyd", "not a folder"),
        ("eve", "not a regular"),
    ):
        assert any(student in line and why in line for line in caplog.messages), caplog.text
    assert {p.name for p in exchange.parents[2].glob("submitted/*/*")} == {LESSON}


def test_a_submission_that_cannot_be_copied_ends_no_collection(tmp_path, caplog):
    """It is not there half, and one that came without write permission can be replaced later."""
    collect = Collect(coursedir=CourseDirectory(max_dir_size=1))
    for name, size in (("large", 2**21), ("read only", 10)):
        (tmp_path / name).mkdir()
        (tmp_path / name / "x.ipynb").write_bytes(b" " * size)
        (tmp_path / name).chmod(0o555)
        collect.do_copy(str(tmp_path / name), str(tmp_path / f"of {name}"))
    assert not (tmp_path / "of large").exists() and "could not be collected" in caplog.text
    assert (tmp_path / "of read only" / "x.ipynb").is_file()
    assert (tmp_path / "of read only").stat().st_mode & 0o700 == 0o700


def test_what_is_changed_after_the_time_it_says_is_seen(tmp_path):
    """A student who has handed in owns the folder, and can put another notebook there."""
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / "x.ipynb").write_text("blank")
    before = last_change(tmp_path / "a")
    time.sleep(0.05)
    (tmp_path / "a" / "x.ipynb").write_text("copied")
    os.utime(tmp_path / "a" / "x.ipynb", (0, 0))
    assert last_change(tmp_path / "a") > before


def test_a_time_before_that_of_the_files_does_not_count(exchange, caplog):
    """A student's own server states it, and whoever has a terminal there can state another one."""
    now = f"{datetime.now(UTC):%Y-%m-%d %H:%M:%S} UTC"
    handed_in(exchange, "ada", now)
    forged = handed_in(exchange, "bob")
    collect(exchange)
    times = {
        path.parents[1].name: path.read_text()
        for path in exchange.parents[2].glob("submitted/*/*/timestamp.txt")
    }
    assert times == {"ada": now, "bob": written(last_change(forged))}
    assert "bob says" in caplog.text and "ada says" not in caplog.text
