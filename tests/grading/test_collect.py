"""Whose file it is, by the name that a platform gives it; oddities become rows and end nothing."""

import zipfile
from datetime import UTC

import classroom as room
import pytest

from rlcourse.grading.books.people import Student
from rlcourse.grading.platforms import collecting
from rlcourse.grading.platforms.archives import Archive
from rlcourse.grading.platforms.collecting import ClassList, notebooks
from rlcourse.grading.platforms.known import files_in
from rlcourse.grading.platforms.platform import Worksheet
from rlcourse.grading.table import Table

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


def rows(tmp_path, members, known=()) -> dict[str, str]:
    """{who: what is said of them} of one archive."""
    made = archive(tmp_path / "submissions.zip", members)
    found = list(notebooks([made], LESSON, ClassList(folders=known)))
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
    found = notebooks([made], LESSON, ClassList(students), worksheet)
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
    found = in_moodle(tmp_path, two)
    assert set(found) >= {"ADA"} and all("easily confused" in found[s] for s in found if s != "ada")
    here = in_moodle(tmp_path, two, [Student("ada")])
    assert here == {"ada": "two people on the platform fit, participant 7001 and participant 7002"}
    students = [Student("ada"), Student("al", email="a@uni.edu")]
    found = in_moodle(tmp_path, new, students)
    assert "two students fit, ada and al" in found["participant 7001"]


METADATA = """\
---
submission_11:
  :submitters:
  - :name: Ada Lovelace
    :sid: '1001'
    :email: ada@uni.edu
  :created_at: 2026-10-01 21:59:00.123456789 Z
  :score: 3.0
  :results: {tests: [{name: "submission_12:", output: ":sid: '1002'"}]}
submission_12:
  :submitters:
  - :name: Bob
    :sid:
    :email: bob@uni.edu
  - :name: Cyd
    :sid: 1003
    :email: cyd@uni.edu
  :created_at: 2026-10-02 10:00:00 +02:00
submission_13:
  :submitters:
  - :name: Nobody
  :created_at:
"""


def gradescope_s(metadata: str = METADATA, also=()) -> dict:
    top = "assignment_77_export"
    files = [("11", "my work.ipynb"), ("11", "deep/notes.txt"), ("12", f"{LESSON}.ipynb"),
             ("13", "x.ipynb"), *also]  # fmt: skip
    found = {f"{top}/submission_{n}/{name}": GOOD for n, name in files}
    return {f"{top}/submission_metadata.yml": metadata.encode(), **found}


def test_gradescope_s_export_says_who_handed_in_and_when(tmp_path):
    made = archive(tmp_path / "x.zip", gradescope_s())
    people = ClassList([Student("jupyter-bob", email="bob@uni.edu")])
    found = {row.student: row for row in notebooks([made], LESSON, people)}
    assert {who: row.reason for who, row in found.items() if row.data} == dict.fromkeys(
        ("1001", "jupyter-bob", "1003"), ""
    )
    assert f"{found['1001'].time:%F %T%z}" == "2026-10-01 21:59:00+0000"
    assert f"{found['1003'].time:%F %T%z}" == "2026-10-02 08:00:00+0000"
    assert "no ID, login or e-mail" in found["submission_13"].reason


@pytest.mark.parametrize(
    "name",
    ["submission_metadata.yml", "../submission_metadata.yml", f"ada_1001_5001_{LESSON}.ipynb",
     f"A_7001_assignsubmission_file_{LESSON}.ipynb", "submission_12/x.ipynb"],
)  # fmt: skip
def test_no_file_in_gradescope_s_archive_speaks_for_another_student(tmp_path, name):
    mine = [("11", name)] + [("11", f"{n}/{name}") for n in range(30)]
    rows_ = notebooks([archive(tmp_path / "x.zip", gradescope_s(also=mine))], LESSON)
    found = {row.student: row.reason for row in rows_}
    assert found.pop("1001") is not None and "submission_13" in found
    assert found["bob@uni.edu"] == found["1003"] == "" and len(found) == 3


def test_a_file_called_metadata_does_not_turn_moodle_s_archive_into_gradescope_s(tmp_path):
    mine = {"Ada L_7001_assignsubmission_file_/submission_metadata.yml": METADATA.encode()}
    sheet = "Participant 7001,Ada L,ada,\nParticipant 7002,Bob M,bob,\n"
    assert in_moodle(tmp_path, sheet, ones=MOODLE_ONES | mine) == {"ada": "", "bob": ""}


@pytest.mark.parametrize("text", ["- 1", "a: [", "submission_11: x", "&a [*a]", "[" * 3000])
def test_metadata_that_cannot_be_read_is_one_row(tmp_path, text):
    (row,) = notebooks([archive(tmp_path / "x.zip", gradescope_s(text))], LESSON)
    assert "cannot be read" in row.reason and "export it again" in row.reason


def test_members_that_lie_about_themselves_cost_their_own_row(tmp_path):
    """Bombs that hide their size, a password, and a link, which is not followed."""
    dictionary = b"\x09\x04\x05\x00\x5d\xff\xff\xff\xff" + bytes(99)  # of four gibibytes
    for attributes, lies, content, collected in (
        ({"compress_type": zipfile.ZIP_BZIP2}, {}, bytes(100 * 2**20), None),
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
    found = rows(tmp_path, CANVAS_ONES | {"e_66_777_a.ipynb": bytes(300 * 2**20)})
    assert "larger than 1 MiB" in found["66"] and FINE.items() <= found.items()
    path = archive(tmp_path / "x.zip", CANVAS_ONES | {"e_66_777_a.ipynb": b"UNIQUE" * 9})
    with zipfile.ZipFile(path) as made:
        at = made.getinfo("e_66_777_a.ipynb").header_offset
    data = bytearray(path.read_bytes())
    data[at + 50 : at + 56] = b"broken"
    path.write_bytes(data)
    found = {row.student: row.reason for row in notebooks([path], LESSON)}
    assert "cannot be unpacked" in found["66"] and found["1001"] == found["1002"] == ""
    for content in (b"", b"PK", bytes(data[:-30])):
        path.write_bytes(content)
        (row,) = notebooks([path], LESSON)
        assert "cannot be read" in row.reason
