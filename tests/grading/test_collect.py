"""Whose file it is, by the name that a platform gives it; oddities become rows and end nothing."""

import zipfile
from datetime import UTC

import classroom as room
import pytest

from rlcourse.grading.books.people import Student
from rlcourse.grading.platforms import collecting
from rlcourse.grading.platforms.archives import Archive
from rlcourse.grading.platforms.collecting import notebooks
from rlcourse.grading.platforms.known import files_in
from rlcourse.grading.platforms.platform import Worksheet
from rlcourse.grading.table import Table

LESSON = room.LESSON
GOOD = b'{"cells": []}'


@pytest.mark.parametrize(
    "name, student",
    [
        ("ada_02_policy_gradient.ipynb", "ada"),
        ("anna_maria_02_policy_gradient (1).ipynb", "anna_maria"),
        ("kim_2026_12_staleness.ipynb", "kim_2026"),
        ("kimlee_98765_4321_02_policy_gradient-1.ipynb", "98765"),
        ("kimlee_98765_4321_my homework.ipynb", "98765"),
        ("eve_6666_7777_1001_5556_02_policy_gradient.ipynb", "6666"),
        ("Jo Smith_12345_assignsubmission_file_02_policy_gradient.ipynb", "12345"),
        ("Jo Smith_12345_assignsubmission_file_/02_policy_gradient-2.ipynb", "12345"),
        ("all/Jo Smith_12345_assignsubmission_file_/a/b/x.ipynb", "12345"),
        ("E_2222_assignsubmission_file_/x_1001_assignsubmission_file_/02_x.ipynb", "2222"),
        ("notes.ipynb", ""),
    ],
)
def test_the_student_is_read_off_what_the_platform_wrote(name, student, tmp_path):
    (file,) = files_in(Archive(archive(tmp_path / "x.zip", {name: GOOD})))
    assert file.owner.removeprefix("participant ") == student


def archive(path, members: dict | list):
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as made:
        for name, content in members if isinstance(members, list) else members.items():
            made.writestr(name, content)
    return path


def rows(tmp_path, members) -> dict[str, str]:
    """{who: what is said of them} of one archive."""
    made = archive(tmp_path / "submissions.zip", members)
    found = list(notebooks([made], LESSON))
    for row in found:
        assert f"{row.student}: {row.said}".isprintable()
        assert not (row.reason and row.data)
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


def test_what_else_a_student_handed_in_is_named(tmp_path):
    files = ("my notes.pdf", "old.ipynb", f"{LESSON}.ipynb", f"{LESSON}-1.ipynb")
    members = {f"ada_1001_{n}_{file}": GOOD for n, file in enumerate(files, 5000)}
    made = archive(tmp_path / "x.zip", members)
    (row,) = notebooks([made], LESSON)
    assert not row.reason and row.said.endswith("; left out: my notes.pdf, old.ipynb")


MOODLE_ONES = {
    "Ada L_7001_assignsubmission_file_/02_policy_gradient.ipynb": GOOD,
    "Bob M_7002_assignsubmission_file_/02_policy_gradient.ipynb": GOOD,
}
SHEET = "Identifier,Full name,Username,Email address,Last modified (submission)\n"


def in_moodle(tmp_path, sheet: str | None, students=(), ones=MOODLE_ONES) -> dict[str, str]:
    made = archive(tmp_path / "x.zip", ones)
    worksheet = None
    if sheet is not None:
        (tmp_path / "sheet.csv").write_text(SHEET + sheet)
        worksheet = Worksheet(Table.read(tmp_path / "sheet.csv"), UTC)
    found = notebooks([made], LESSON, students, worksheet)
    return {row.student: row.reason for row in found}


def test_moodle_s_numbers_are_read_by_the_worksheet_of_the_same_assignment(tmp_path):
    """In the next assignment Ada is 7101: the number alone would make two students of her."""
    students = [Student("jupyter-ada", platform_id="ada"), Student("7002", email="bob@uni.edu")]
    this = "Participant 7001,Ada L,ada,\nParticipant 7002,Bob M,,Bob@uni.edu\n"
    assert in_moodle(tmp_path, this, students) == {"jupyter-ada": "", "7002": ""}
    following = this.replace("700", "710")
    found = in_moodle(tmp_path, following, students)
    assert set(found) == {"participant 7001", "participant 7002"}
    assert all("from the same assignment" in reason for reason in found.values())
    ones = {name.replace("700", "710"): content for name, content in MOODLE_ONES.items()}
    assert in_moodle(tmp_path, following, students, ones) == {"jupyter-ada": "", "7002": ""}
    found = in_moodle(tmp_path, None, students)
    assert all("--worksheet" in reason for reason in found.values())


def test_who_is_new_or_unclear_in_moodle_is_called_by_a_lasting_name_or_said(tmp_path):
    new = "Participant 7001,Ada L,ada,a@uni.edu\nParticipant 7002,Bob M,<b>,bob@uni.edu\n"
    assert in_moodle(tmp_path, new) == {"ada": "", "bob@uni.edu": ""}
    found = in_moodle(tmp_path, "Participant 7001,Ada L,,\nParticipant 7002,Bob M,bob,\n")
    assert found.pop("bob") == "" and "no ID, login or e-mail" in found["participant 7001"]
    two = "Participant 7001,Ada L,ada,\nParticipant 7002,Bob M,ADA,\n"
    here = in_moodle(tmp_path, two, [Student("ada")])
    assert here == {"ada": "two people on the platform fit, participant 7001 and participant 7002"}
    students = [Student("ada"), Student("al", email="a@uni.edu")]
    found = in_moodle(tmp_path, new, students)
    assert "two students fit, ada and al" in found["participant 7001"]


def test_members_that_lie_about_themselves_cost_their_own_row(tmp_path):
    """Bombs that hide their size, a password, and a link, which is not followed."""
    dictionary = b"\x09\x04\x05\x00\x5d\xff\xff\xff\xff" + bytes(99)  # of four gibibytes
    for attributes, lies, content, collected in (
        ({}, {"compress_type": zipfile.ZIP_LZMA}, dictionary, None),
        ({}, {"flag_bits": 1}, GOOD, None),
        ({}, {"file_size": 2**40}, GOOD, GOOD),
        ({"external_attr": 0o120777 << 16}, {}, b"/etc/passwd", b"/etc/passwd"),
    ):
        with zipfile.ZipFile(tmp_path / "x.zip", "w", zipfile.ZIP_DEFLATED) as made:
            made.writestr("ada_1001_5001_a.ipynb", GOOD)
            member = zipfile.ZipInfo("eve_66_777_a.ipynb")
            for name, value in attributes.items():
                setattr(member, name, value)
            made.writestr(member, content)
            for name, value in lies.items():
                setattr(member, name, value)
        found = {row.student: row for row in notebooks([tmp_path / "x.zip"], LESSON)}
        assert found["1001"].data == GOOD and not found["1001"].reason, found
        assert (None if found["66"].reason else found["66"].data) == collected


def test_two_members_of_one_name_bombs_and_damage_cost_their_own_row(tmp_path, monkeypatch):
    monkeypatch.setattr(collecting, "LARGEST_FILE", 2**20)
    with pytest.warns(UserWarning, match="Duplicate name"):
        found = rows(tmp_path, [*CANVAS_ONES.items(), ("e_66_777_a.ipynb", b"1"),
                                ("e_66_777_a.ipynb", b"2")])  # fmt: skip
    assert "two files with the same name" in found["66"] and FINE.items() <= found.items()
    found = rows(tmp_path, CANVAS_ONES | {"e_66_777_a.ipynb": bytes(9 * 2**20)})
    assert "larger than 1 MiB" in found["66"] and FINE.items() <= found.items()
    (tmp_path / "x.zip").write_bytes(b"PK")
    (row,) = notebooks([tmp_path / "x.zip"], LESSON)
    assert "cannot be read" in row.reason
