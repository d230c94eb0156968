"""Whose file it is, by the name that a platform gives it; oddities become rows and end nothing."""

import json
import os
import shutil
import subprocess
import sys
import zipfile

import classroom as room
import pytest

from rlcourse.grading.books.gradebook import Course, Grades, load_source
from rlcourse.grading.handing_in import collecting
from rlcourse.grading.handing_in.collecting import CANVAS, MOODLE, PLAIN, _whose, collect, notebooks

LESSON = room.LESSON
GOOD = b'{"cells": []}'


@pytest.mark.parametrize(
    "name, student",
    [
        ("ada_02_policy_gradient.ipynb", "ada"),
        ("anna.maria-b_02_policy_gradient.ipynb", "anna.maria-b"),
        ("anna_maria_02_policy_gradient (1).ipynb", "anna_maria"),
        ("s01_02_policy_gradient.ipynb", "s01"),
        ("kim_2026_12_staleness.ipynb", "kim_2026"),
        ("kimlee_98765_4321_02_policy_gradient-1.ipynb", "98765"),
        ("kimlee_LATE_98765_4321_02_policy_gradient.ipynb", "98765"),
        ("kimlee_98765_4321_my homework.ipynb", "98765"),
        ("eve_6666_7777_1001_5556_02_policy_gradient.ipynb", "6666"),
        ("Jo Smith_12345_assignsubmission_file_02_policy_gradient.ipynb", "12345"),
        ("Jo Smith_12345_assignsubmission_file/02_policy_gradient.ipynb", "12345"),
        ("Jo Smith_12345_assignsubmission_file_/02_policy_gradient-2.ipynb", "12345"),
        ("all/Jo Smith_12345_assignsubmission_file_/a/b/x.ipynb", "12345"),
        ("E_2222_assignsubmission_file_/x_1001_assignsubmission_file_/02_x.ipynb", "2222"),
        ("notes.ipynb", None),
    ],
)
def test_the_student_is_read_off_what_the_platform_wrote(name, student):
    assert _whose(room.Path("x.zip"), name, (CANVAS, MOODLE, PLAIN)).student == student


def archive(path, members: dict | list):
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as made:
        for name, content in members if isinstance(members, list) else members.items():
            made.writestr(name, content)
    return path


def rows(tmp_path, members, known=()) -> dict[str, str]:
    """{who: what is said of them} of one archive."""
    shutil.rmtree(tmp_path / "out", ignore_errors=True)
    made = archive(tmp_path / "submissions.zip", members)
    found = collect([made], LESSON, tmp_path / "out", known)
    for row in found:
        assert str(row).isprintable()
        assert bool(row.reason) == (row.path is None)
    return {row.student: row.reason or ("late" if row.late else "in time") for row in found}


CANVAS_ONES = {
    "ada_1001_5001_02_policy_gradient.ipynb": GOOD,
    "bob_LATE_1002_5002_02_policy_gradient-2.ipynb": GOOD,
}
FINE = {"1001": "in time", "1002": "late"}


@pytest.mark.parametrize(
    "members, who, said",
    [
        ({"eve_6666_7777_1001_5556_02_policy_gradient.ipynb": GOOD}, "6666", "in time"),
        ({"1001_5556_02_x.ipynb": GOOD}, "1001_5556_02_x.ipynb", "does not say whose"),
        ({"eve_6666_7777_all.zip": b"PK"}, "6666", "an archive inside the archive"),
        ({"eve_6666_7777_essay.pdf": b""}, "6666", "no notebook"),
        ({"eve_6666_7777_03_baselines.ipynb": GOOD}, "6666", "no notebook of 02"),
        ({"eve_6666_7777_a.ipynb": b"1", "eve_6666_7778_b.ipynb": b"2"}, "6666", "2 different"),
        ({"eve_6666_7777_a.ipynb": b"1", "eve_6666_7778_b.ipynb": b"1"}, "6666", "in time"),
        ({"eve_6666_7777_x-1.ipynb": b"1", "eve_6666_7778_x-2.ipynb": b"2"}, "6666", "in time"),
        ({"a/b_1001_7777_a.ipynb": GOOD}, "'a/b_1001_7777_a.ipynb'", "does not say whose"),
        ({"../x_6666_7777_a.ipynb": GOOD}, "'../x_6666_7777_a.ipynb'", "does not say whose"),
        ({"/etc/x_6666_7777_a.ipynb": GOOD}, "'/etc/x_6666_7777_a.ipynb'", "does not say whose"),
        ({"eve_6666_7777_\x1b[2J\n.ipynb": GOOD}, "6666", "in time"),
    ],
)  # fmt: skip
def test_in_an_archive_of_canvas_s_one_odd_member_is_one_row(tmp_path, members, who, said):
    found = rows(tmp_path, CANVAS_ONES | members)
    assert {name: found.pop(name) for name in FINE} == FINE
    assert said in found.pop(who) and not found
    inside = [p for p in tmp_path.rglob("*.ipynb")]
    assert all(tmp_path / "out" in path.parents for path in inside)


@pytest.mark.parametrize(
    "name", ["=1+1", "<img src=x>", "-rf", "x" * 120, "\x1b[2J", 'a"b', "\u202ea", "a\nb", "ADA"]
)
def test_in_a_plain_archive_the_rule_for_names_holds(tmp_path, name):
    members = {f"{n}_02_policy_gradient.ipynb": GOOD for n in ("ada", "bob", name)}
    found = rows(tmp_path, members)
    assert found.pop("ada") == found.pop("bob") == "in time"
    assert len(found) == 1 and "in time" not in found.values()


def test_a_name_too_much_like_one_that_is_there_is_refused(tmp_path):
    found = rows(tmp_path, {"ada_02_policy_gradient.ipynb": GOOD}, ["Ada"])
    assert "easily confused with Ada" in found["ada"]


@pytest.mark.parametrize(
    "names",
    [
        ["ada_1001_5001_x", "studenttest_1_5002_x", "studenttest_LATE_1_5003_y"],
        [f"{n}_assignsubmission_file_x" for n in ("Ada L_1001", "Test Student_1")],
    ],
)
def test_the_platform_s_test_student_is_left_out_unless_the_roster_knows_the_number(
    tmp_path, names
):
    made = archive(tmp_path / "x.zip", {f"{name}.ipynb": GOOD for name in names})
    found = {row.student: row.reason for row in notebooks([made], LESSON)}
    assert found.pop("1001") == "" and len(found) == 1
    assert "the platform's test student" in found["1"]
    assert "nbgrader db student add 1 --lms-user-id 1" in found["1"]
    people = {"1": "t.student"}
    found = {row.student: row.reason for row in notebooks([made], LESSON, people=people)}
    assert found == {"1001": "", "t.student": ""}


def test_two_members_of_one_name_bombs_and_damage_cost_their_own_row(tmp_path, monkeypatch):
    monkeypatch.setattr(collecting, "LARGEST_FILE", 2**20)
    with pytest.warns(UserWarning, match="Duplicate name"):
        found = rows(tmp_path, [*CANVAS_ONES.items(), ("e_66_777_a.ipynb", b"1"),
                                ("e_66_777_a.ipynb", b"2")])  # fmt: skip
    assert "two files with the same name" in found["66"] and FINE.items() <= found.items()
    found = rows(tmp_path, CANVAS_ONES | {"e_66_777_a.ipynb": bytes(300 * 2**20)})
    assert "larger than 1 MiB" in found["66"] and FINE.items() <= found.items()
    path = archive(tmp_path / "x.zip", CANVAS_ONES | {"e_66_777_a.ipynb": b"UNIQUE" * 9})
    with zipfile.ZipFile(path) as made:
        at = made.getinfo("e_66_777_a.ipynb").header_offset
    data = bytearray(path.read_bytes())
    data[at + 50 : at + 56] = b"broken"
    path.write_bytes(data)
    found = {row.student: row.reason for row in collect([path], LESSON, tmp_path / "again")}
    assert "cannot be unpacked" in found["66"] and found["1001"] == found["1002"] == ""
    for content in (b"", b"PK", bytes(data[:-30])):
        path.write_bytes(content)
        (row,) = collect([path], LESSON, tmp_path / "none")
        assert "cannot be read" in row.reason


@pytest.mark.slow
def test_nbgrader_collects_by_it_and_knows_who_is_late(course):
    """A due date is in the gradebook; a file that claims a neighbor's number is its owner's."""
    opened = Course.open(course)
    with Grades(opened, LESSON, load_source(opened, LESSON)) as grades:
        due = {"duedate": "2026-10-01 23:59:00 UTC"}
        grades.gradebook.update_or_create_assignment(LESSON, **due)
    shutil.copytree(course / "source", course / "release")
    given = course / "downloaded" / LESSON / "archive"
    given.mkdir(parents=True)
    notebook = json.dumps(room.released(course)).encode()
    eve = {"eve_6666_7777_1001_5556_02_policy_gradient.ipynb": notebook, "eve_1_555_x.zip": b"PK"}
    archive(given / "submissions.zip", {n: notebook for n in CANVAS_ONES} | eve)
    done = subprocess.run(
        [sys.executable, "-m", "nbgrader", "zip_collect", LESSON, "--force"],
        cwd=course, capture_output=True, text=True, env={**os.environ, "PYTHONUTF8": "1"},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-2000:]
    assert "1: an archive inside the archive" in done.stderr
    submitted = course / "submitted"
    assert sorted(os.listdir(submitted)) == ["1001", "1002", "6666"]
    times = {path.parts[-3]: path.read_text() for path in submitted.rglob("timestamp.txt")}
    assert times == {"1002": "2026-10-01 23:59:01"}
