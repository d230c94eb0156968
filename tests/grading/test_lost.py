"""What is lost or damaged is noticed and said in one sentence, and what is private is private."""

import json
import os
import sqlite3
import stat
from pathlib import Path

import classroom as room
import pytest

from rlcourse.errors import UserError
from rlcourse.grading.books.gradebook import Course, load_source
from rlcourse.grading.books.grades import read_grades
from rlcourse.grading.books.opening import open_gradebook
from rlcourse.grading.engine import grade
from rlcourse.grading.judging.secret import SECRET_BYTES, course_secret
from rlcourse.grading.locking import only_one


def mode_of(path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


@pytest.fixture
def gradebook(template, tmp_path):
    """A new gradebook's file, and the course directory that it is in."""
    (tmp_path / "course.toml").write_bytes((template / "course.toml").read_bytes())
    open_gradebook(Course.open(tmp_path).directory).close()
    return tmp_path / "gradebook.db"


def test_a_gradebook_is_readable_by_its_owner_alone_from_the_start(gradebook):
    assert mode_of(gradebook) == 0o600
    gradebook.chmod(0o644)  # as Formgrader makes one
    open_gradebook(Course.open(gradebook.parent).directory).close()
    assert mode_of(gradebook) == 0o640


def made_by(*statements):
    """Another program's database."""

    def damage(path):
        path.unlink()
        with sqlite3.connect(path) as database:
            for statement in statements:
                database.execute(statement)

    return damage


DAMAGE = {
    "another program's": made_by("CREATE TABLE places (a)"),
    "like a gradebook": made_by(
        "CREATE TABLE student (a)", "CREATE TABLE assignment (a)", "CREATE TABLE grade (a)"
    ),
    "of a version alone": made_by("CREATE TABLE alembic_version (version_num TEXT)"),
    "a pipe": lambda path: (path.unlink(), os.mkfifo(path)),
    "garbage": lambda path: path.write_bytes(b"garbage" * 1000),
    "truncated": lambda path: os.truncate(path, path.stat().st_size // 2),
    "a directory": lambda path: (path.unlink(), path.mkdir()),
}


@pytest.mark.parametrize("damage", DAMAGE.values(), ids=DAMAGE)
def test_a_damaged_gradebook_is_one_sentence(gradebook, damage):
    damage(gradebook)
    with pytest.raises(UserError, match=r"gradebook\.db is damaged \(.*\): put the copy from your"):
        open_gradebook(Course.open(gradebook.parent).directory)
    with pytest.raises(UserError, match="is damaged"):
        read_grades(gradebook.parent)


def test_an_empty_gradebook_beside_graded_submissions_is_not_exported(gradebook):
    done = gradebook.parent / "autograded" / "ada" / room.LESSON / f"{room.LESSON}.ipynb"
    done.parent.mkdir(parents=True)
    done.touch()
    os.truncate(gradebook, 0)
    with pytest.raises(UserError, match=r"gradebook\.db is empty, though submissions were graded"):
        read_grades(gradebook.parent)


def test_settings_that_do_not_run_are_one_sentence(tmp_path):
    (tmp_path / "nbgrader_config.py").write_text("c = get_config()\nc.x = (\n")
    with pytest.raises(UserError, match=r"nbgrader_config\.py cannot be run: SyntaxError, line 2"):
        Course.open(tmp_path)
    (tmp_path / "nbgrader_config.py").write_text("1 / 0")
    with pytest.raises(UserError, match="ZeroDivisionError: division by zero"):
        Course.open(tmp_path)


@pytest.mark.parametrize("content", [b"", b"short", bytes(SECRET_BYTES), b"\n" * 40, b"no no " * 9])
def test_a_secret_that_could_be_guessed_is_refused(tmp_path, content):
    (tmp_path / ".grading-secret").write_bytes(content)
    with pytest.raises(UserError, match=f"{len(content)} bytes of {SECRET_BYTES}"):
        course_secret(tmp_path)


@pytest.mark.parametrize("make", [Path.mkdir, lambda path: path.symlink_to("nowhere")])
def test_a_secret_that_cannot_be_read_is_not_made_anew(tmp_path, make):
    make(tmp_path / ".grading-secret")
    with pytest.raises(UserError, match=r"cannot be read \("):
        course_secret(tmp_path)


@pytest.mark.parametrize("in_the_way", ["autograded", "autograded/.lock"])
def test_what_is_in_the_way_of_a_lock_is_one_sentence(tmp_path, in_the_way):
    (tmp_path / in_the_way).mkdir(parents=True)
    if in_the_way == "autograded":
        (tmp_path / in_the_way).rmdir()
        (tmp_path / in_the_way).touch()
    with (
        pytest.raises(UserError, match=r"\.lock could not be written"),
        only_one(tmp_path / "autograded" / ".lock", 0, "busy"),
    ):
        pass


NO_CELLS = b'{"cells": %s, "metadata": {}, "nbformat": 4, "nbformat_minor": 5}'


@pytest.mark.parametrize("content", [
    *(b"", b"[]", b"{}", b"null", b"\xff", b"[" * 100_000),
    *(NO_CELLS % cells for cells in (b"null", b"[]", b"[1]", b'[{"a": 2}]', b"{}")), None,
], ids=str)  # fmt: skip
def test_a_damaged_source_notebook_is_one_sentence(tmp_path, content):
    """None stands for a directory of its name."""
    (tmp_path / "nbgrader_config.py").touch()
    path = tmp_path / "source" / room.LESSON / f"{room.LESSON}.ipynb"
    path.parent.mkdir(parents=True)
    path.mkdir() if content is None else path.write_bytes(content)
    with pytest.raises(UserError, match=f"is damaged: run `rlcourse build {room.LESSON}` again"):
        load_source(Course.open(tmp_path), room.LESSON)


def test_a_secret_is_written_whole_or_not_at_all(tmp_path, monkeypatch):
    with monkeypatch.context() as power_cut:
        power_cut.setattr("rlcourse.files.os.fsync", lambda descriptor: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            course_secret(tmp_path)
    assert not (tmp_path / ".grading-secret").exists()
    made = course_secret(tmp_path)
    assert len(made) == SECRET_BYTES and course_secret(tmp_path) == made
    assert mode_of(tmp_path / ".grading-secret") == 0o600
    assert len(list(tmp_path.iterdir())) == 1


@pytest.mark.slow
def test_a_lost_gradebook_is_made_again_from_what_was_graded(course):
    """Nobody's code runs again, and what waits for a person waits."""
    room.submit(course, "ada", room.solved(course))
    room.submit(course, "bob", room.solved(course, room.NAMES[:1], answer=""))
    room.submit(course, "leo", "not a notebook")
    first = grade("02", course=course)
    before = {name: room.grades(course, name) for name in ("ada", "bob", "leo")}
    assert mode_of(course / "autograded") == 0o700
    os.truncate(course / "gradebook.db", 0)
    said: list[str] = []
    again = grade("02", course=course, on_warning=said.append)
    assert {name: room.grades(course, name) for name in before} == before
    assert all(row.before for row in again.rows)
    assert [row.waits for row in again.rows] == [row.waits for row in first.rows]
    assert "had no points of 3 submissions" in said[-1]
    assert json.dumps(grade("02", course=course).as_json()) == json.dumps(again.as_json())
