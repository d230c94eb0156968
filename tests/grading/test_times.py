"""Who handed in when, by Moodle's worksheet; and `rlcourse collect`, which writes it down."""

import zipfile
from datetime import UTC, datetime
from zoneinfo import ZoneInfo

import classroom as room
import pytest

from rlcourse.errors import UserError
from rlcourse.grading.commands import _zone
from rlcourse.grading.platforms.collecting import Collected, described, notebooks, take
from rlcourse.grading.platforms.moodle import in_utc
from rlcourse.grading.platforms.platform import Worksheet
from rlcourse.grading.table import Table

LESSON = room.LESSON
BERLIN = ZoneInfo("Europe/Berlin")
EARLY = "Thursday, 1 October 2026, 11:59 PM"
HEAD = "Identifier,Full name,Email address,Grade,Last modified (submission)\n"


@pytest.mark.parametrize(
    "text, utc",
    [
        ("Thursday, 1 October 2026, 11:59 PM", (2026, 10, 1, 21, 59)),
        ("Thursday, October 1, 2026, 11:59\u202fPM", (2026, 10, 1, 21, 59)),
        ("Friday, 2 October 2026, 12:05 AM", (2026, 10, 1, 22, 5)),
        ("Friday, 2 October 2026, 12:05 PM", (2026, 10, 2, 10, 5)),
        ("1 January 2027, 00:10", (2026, 12, 31, 23, 10)),  # winter
    ],
)
def test_a_time_as_moodle_writes_it_is_read_in_its_zone(text, utc):
    assert in_utc(text, BERLIN) == datetime(*utc, tzinfo=UTC)


@pytest.mark.parametrize(
    "text",
    ["-", "", "Donnerstag, 1. Oktober 2026, 23:59", "1 October 2026, 13:00 PM", "soon", "=1+1",
     "31 February 2026, 10:00", "1 October 99999, 10:00", "1 octember 2026, 10:00", "9" * 5000],
)  # fmt: skip
def test_what_is_no_time_is_none(text):
    assert in_utc(text, BERLIN) is None


def worksheet(tmp_path, *rows: str, head: str = HEAD, zone=BERLIN) -> Worksheet:
    path = tmp_path / "worksheet.csv"
    path.write_text(head + "\n".join(rows) + "\n")
    return Worksheet(Table.read(path), zone)


def row(number, mail: str, time: str) -> str:
    return f'Participant {number},Some Body,{mail},,"{time}"'


def test_another_table_and_an_unknown_zone_are_refused_in_a_sentence(tmp_path):
    archive = moodle(tmp_path, {1: b"a"})
    other = worksheet(tmp_path, "1,2", head="Identifier,Grade\n")
    with pytest.raises(UserError, match="download Moodle's grading worksheet in English"):
        list(notebooks([archive], LESSON, worksheet=other))
    for zone in ("Nowhere/City", "../../etc/passwd", "", "a\x1b"):
        with pytest.raises(UserError, match="no such time zone"):
            _zone(zone)


def moodle(tmp_path, students: dict):
    path = tmp_path / "submissions.zip"
    with zipfile.ZipFile(path, "w") as made:
        for number, content in students.items():
            made.writestr(f"S B_{number}_assignsubmission_file_/{LESSON}.ipynb", content)
    return path


UNTIMED = [row(n, f"s{n}", "?") for n in (1, 2, 3)]


def taken(path, into, table=None, due=None, force=False) -> dict:
    table = table or worksheet(path.parent, *UNTIMED)
    found = notebooks([path], LESSON, worksheet=table)
    return {row.student: row for row in take(found, LESSON, into, due, force)}


def test_what_is_collected_again_is_replaced_only_where_that_is_asked_for(tmp_path):
    into = tmp_path / "submitted"
    table = worksheet(tmp_path, row(1, "s1", EARLY), row(2, "s2", "?"))
    first = taken(moodle(tmp_path, {1: b"a", 2: b"b"}), into, table)
    one, two = (into / n / LESSON for n in ("s1", "s2"))
    assert (one / "timestamp.txt").read_text() == "2026-10-01 21:59:00 UTC"
    assert first["s2"].path and not (two / "timestamp.txt").exists()
    doubt = "it counts as on time, because its time in the table cannot be read: ?"
    assert first["s2"].said == f"collected (new); {doubt}"
    again = taken(moodle(tmp_path, {1: b"a", 2: b"c"}), into)
    assert again["s1"].path and "--force" in again["s2"].reason
    assert (one / "timestamp.txt").exists() and (two / f"{LESSON}.ipynb").read_bytes() == b"b"
    assert [again["s1"].change, again["s2"].change] == ["unchanged", ""]
    forced = taken(moodle(tmp_path, {1: b"new", 2: b"c", 3: b"d"}), into, force=True)
    assert [forced[n].change for n in ("s1", "s2", "s3")] == ["replaced", "replaced", "new"]
    assert (two / f"{LESSON}.ipynb").read_bytes() == b"c"
    assert not (one / "timestamp.txt").exists()  # it was the other notebook's


def canvas(tmp_path, content: bytes, late: str = ""):
    path = tmp_path / "submissions.zip"
    with zipfile.ZipFile(path, "w") as made:
        made.writestr(f"ada{late}_1_5001_{LESSON}.ipynb", content)
    return path


def test_who_is_no_longer_late_on_canvas_is_not_here(tmp_path):
    """An instructor may excuse it there, and the notebook stays the same."""
    into, due = tmp_path / "submitted", datetime(2026, 10, 1, 21, 59)
    note = into / "1" / LESSON / "timestamp.txt"
    late = taken(canvas(tmp_path, b"a", "_LATE"), into, due=due)["1"]
    assert late.said == "collected, late (new)"
    assert note.read_text() == "2026-10-01 21:59:01 UTC"
    said = taken(canvas(tmp_path, b"a"), into, due=due)["1"].said
    assert said == "collected (unchanged, no longer late)" and not note.exists()
    note.write_text("2026-10-03 08:00:00 UTC")  # by hand, which Canvas knows nothing about
    assert taken(canvas(tmp_path, b"a"), into, due=due)["1"].said == "collected (unchanged)"


def test_the_table_has_names_where_they_are_known_and_no_command_to_a_terminal():
    rows = [Collected("2", "no notebook among the files"), Collected("10", late=True)]
    lines = described(rows, {"10": "Łukasz Müller", "3": "Some Body"}).splitlines()
    assert lines[1] == "10       Łukasz Müller  collected, late"
    assert lines[-1] == "1 collected, 1 not collected"
    hostile = described([Collected("1")], {"1": "\x1b[2J\n" + "x" * 100})
    assert "\x1b" not in hostile and hostile.count("\n") == 2 and len(hostile) < 250


def test_a_link_in_the_way_is_a_row_and_is_not_followed(tmp_path):
    into, elsewhere = tmp_path / "submitted", tmp_path / "elsewhere"
    elsewhere.mkdir()
    into.mkdir()
    (into / "s1").symlink_to(elsewhere)
    found = taken(moodle(tmp_path, {1: b"a", 2: b"b"}), into, force=True)
    assert "symlink" in found["s1"].reason and found["s2"].path and not list(elsewhere.iterdir())
