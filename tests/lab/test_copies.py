"""The student's copy of the lessons: what is updated, and what is never overwritten."""

import errno
import json
import os
from pathlib import Path

import nbformat
import pytest
from nbgrader.utils import compute_checksum
from small_courses import write_course

from rlcourse.courses.finding import clone_root
from rlcourse.errors import UserError
from rlcourse.lab import lessons
from rlcourse.lab.answered import answered_cells, released_checksum
from rlcourse.lab.lessons import MANIFEST, copy_lessons, course_lessons

FIRST, SECOND = "01_first", "02_second"


def notebook(text: str, answer: str = "raise NotImplementedError") -> str:
    """One cell of text, and one that was released with a stub and now holds `answer`."""
    facts = {"grade": False, "solution": True, "locked": False, "grade_id": "f"}
    facts |= {"schema_version": 3, "task": False, "cell_type": "code"}
    stub = nbformat.v4.new_code_cell("raise NotImplementedError", metadata={"nbgrader": facts})
    facts["checksum"] = compute_checksum(stub)
    cells = [
        nbformat.v4.new_markdown_cell(text, id="text"),
        nbformat.v4.new_code_cell(answer, id="f", metadata={"nbgrader": facts}),
    ]
    return nbformat.writes(nbformat.v4.new_notebook(cells=cells))


@pytest.fixture
def course(tmp_path, monkeypatch):
    """The course's own two lessons, of version 1."""
    course = write_course(tmp_path / "course", dict.fromkeys((FIRST, SECOND), "# A lesson"))
    directory = tmp_path / "notebooks"
    for name in (FIRST, SECOND):
        (directory / name).mkdir(parents=True)
        (directory / name / f"{name}.ipynb").write_text(notebook("version 1"))
    monkeypatch.setenv("RLCOURSE_COURSE", str(course))
    return directory


@pytest.fixture
def copy(tmp_path, course):
    copy_lessons(tmp_path / "mine")
    return tmp_path / "mine"


def text_of(directory: Path, name: str = FIRST) -> str:
    return (directory / name / f"{name}.ipynb").read_text()


def write(directory: Path, text: str, name: str = FIRST) -> None:
    (directory / name / f"{name}.ipynb").write_text(text)


def test_missing_lessons_are_copied_byte_for_byte(course, tmp_path):
    copied = copy_lessons(tmp_path / "mine")
    assert copied.new == (FIRST, SECOND) and "2 lessons copied" in str(copied)
    for name in (FIRST, SECOND):
        mine = tmp_path / "mine" / name / f"{name}.ipynb"
        assert mine.read_bytes() == (course / name / f"{name}.ipynb").read_bytes()
    assert "up to date" in str(copy_lessons(tmp_path / "mine"))


def test_an_unchanged_lesson_is_renewed(course, copy):
    write(course, notebook("version 2"))
    assert copy_lessons(copy).renewed == (FIRST,)
    assert "version 2" in text_of(copy)


def test_a_lesson_that_jupyterlab_only_saved_counts_as_unchanged(course, copy):
    node = json.loads(text_of(copy))
    node["metadata"]["language_info"] = {"name": "python", "version": "3.11"}
    node["cells"][0]["source"] = "".join(node["cells"][0]["source"])
    write(copy, json.dumps(node))
    write(course, notebook("version 2"))
    assert copy_lessons(copy).renewed == (FIRST,)


@pytest.mark.parametrize("change", ["answer", "output", "broken"])
def test_a_changed_lesson_is_never_written_over(course, copy, change):
    node = json.loads(text_of(copy))
    if change == "answer":
        node["cells"][1]["source"] = "return 1"
    else:
        node["cells"][1]["outputs"] = [
            {"output_type": "stream", "name": "stdout", "text": "an hour of training"}
        ]
    mine = "{ cut off" if change == "broken" else json.dumps(node)
    write(copy, mine)
    assert copy_lessons(copy).outdated == ()  # nothing newer yet, so nothing to say
    write(course, notebook("version 2"))
    for _ in range(2):
        copied = copy_lessons(copy)
        assert copied.outdated == (FIRST,) and "rename your notebook" in str(copied)
        assert text_of(copy) == mine


def test_a_version_with_the_same_cells_is_no_newer_one(course, copy):
    write(copy, mine := notebook("version 1", answer="return 1"))
    node = json.loads(text_of(course))
    node["metadata"]["released"] = "elsewhere"
    write(course, json.dumps(node, indent=2))
    assert copy_lessons(copy).outdated == () and text_of(copy) == mine


@pytest.mark.parametrize("manifest", [None, "{", "[]", '{"01_first": 1}'])
def test_without_a_manifest_every_other_text_counts_as_the_student_s(course, copy, manifest):
    (copy / MANIFEST).unlink()
    if manifest is not None:
        (copy / MANIFEST).write_text(manifest)
    write(course, notebook("version 2"))
    copied = copy_lessons(copy)
    assert copied.outdated == (FIRST,) and not copied.renewed
    assert "version 1" in text_of(copy)
    write(course, notebook("version 3"), SECOND)  # adopted just now, as it was the course's
    assert copy_lessons(copy).renewed == (SECOND,)


def test_answers_that_stood_in_the_course_s_own_notebook_survive_too(course, tmp_path):
    """Who worked in ``notebooks/`` of a clone, and then put it back as it was."""
    write(course, notebook("version 1", answer="return 1"))
    copy_lessons(tmp_path / "mine")
    write(course, notebook("version 1"))
    assert copy_lessons(tmp_path / "mine").outdated == (FIRST,)
    assert "return 1" in text_of(tmp_path / "mine")


def test_the_course_s_own_folders_are_refused():
    for name in ("notebooks", "course/mine", "solutions"):
        with pytest.raises(UserError, match="belongs to the course itself"):
            copy_lessons(clone_root() / name)


def test_a_write_that_fails_leaves_the_old_lesson_and_nothing_half(course, copy, monkeypatch):
    def full(handle):
        raise OSError(errno.ENOSPC, "No space left on device")

    write(course, notebook("version 2"))
    with monkeypatch.context() as patch, pytest.raises(UserError, match="No space left"):
        patch.setattr(os, "fsync", full)
        copy_lessons(copy)
    assert "version 1" in text_of(copy)
    assert [path.name for path in (copy / FIRST).iterdir()] == [f"{FIRST}.ipynb"]
    assert copy_lessons(copy).renewed == (FIRST,)


def test_the_copy_one_stands_in_is_used_and_not_a_copy_in_the_copy(copy, tmp_path, monkeypatch):
    monkeypatch.chdir(copy)
    assert lessons.default_directory() == copy
    monkeypatch.chdir(tmp_path)
    assert lessons.default_directory() == tmp_path / "course-lessons"
    monkeypatch.setenv("RLCOURSE_COURSE", "rlcourse")
    assert lessons.default_directory() == clone_root() / "my-lessons"
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setattr(lessons, "clone_root", lambda: None)
    assert lessons.default_directory() == tmp_path / "rlcourse-lessons"


def test_in_a_clone_that_one_cannot_write_to_the_copy_is_at_home(tmp_path, monkeypatch):
    """One editable install for all users of a machine: each must get a copy of their own."""
    home, clone = tmp_path / "home", tmp_path / "clone"
    for folder in (home, clone):
        folder.mkdir()
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setenv("RLCOURSE_COURSE", "rlcourse")
    monkeypatch.setattr(lessons, "clone_root", lambda: clone)
    monkeypatch.chdir(tmp_path)
    # the course itself is found beside the clone, as ever
    monkeypatch.setattr(lessons, "shipped_directory", lambda: lessons.current().directory)
    assert lessons.default_directory() == clone / "my-lessons"
    monkeypatch.setattr(os, "access", lambda path, mode: False)
    assert lessons.default_directory() == home / "rlcourse-lessons"
    copied = copy_lessons(lessons.default_directory())
    assert len(copied.new) == len(course_lessons())
    for elsewhere in (home, home / "rlcourse-lessons", home / "rlcourse-lessons" / "00_start_here"):
        monkeypatch.chdir(elsewhere)
        assert lessons.default_directory() == home / "rlcourse-lessons"
    assert not list(clone.iterdir())


def test_the_checksum_of_a_cell_is_nbgrader_s_own():
    checked = 0
    for path in course_lessons().values():
        assert answered_cells(path) == []
        for cell in nbformat.read(path, as_version=4).cells:
            if "nbgrader" in cell.metadata:
                assert released_checksum(cell) == compute_checksum(cell)
                checked += 1
    assert checked > 100


def test_an_answer_is_any_other_text_than_the_released_one(tmp_path):
    path = tmp_path / "n.ipynb"
    path.write_text(notebook("text", answer="x = 1\nraise NotImplementedError"))
    assert answered_cells(path) == ["f"]
    path.write_text(notebook("other text"))
    assert answered_cells(path) == []
    path.write_text("{")
    assert answered_cells(path) == []
