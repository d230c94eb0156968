"""Moodle: an assignment's archive, and its grading worksheet, which says who is who, and when.

Moodle numbers people anew in each assignment. So the number in front of a file means nothing
without the worksheet of the same assignment, and no number names a person in the next one. The
worksheet's times are to the minute, and in the time zone of the person who exported it.
"""

import re
import zipfile
from collections.abc import Iterable
from datetime import UTC, datetime, tzinfo
from pathlib import Path, PurePosixPath

from rlcourse.errors import UserError
from rlcourse.files import write_errors_explained
from rlcourse.grading.names import one_line
from rlcourse.grading.platforms.archives import Archive, last, mostly
from rlcourse.grading.platforms.platform import File, Page, Person, Platform, Worksheet
from rlcourse.grading.table import Table

# name_PARTICIPANT_assignsubmission_file_file, or a directory; a person's name has no underscore
NAME = re.compile(r"[^_/]*_([0-9]+)_assignsubmission_file_?/?([^/]+)")
NAME_IN_ZIP = re.compile(r"[^\w .-]|_")
PARTICIPANTS, FULL_NAME, GRADE = "Identifier", "Full name", "Grade"
HANDED_IN = "Last modified (submission)"
CHANGEABLE = "Grade can be changed"
# "Thursday, 1 October 2026, 11:59 PM"; in American English "Thursday, October 1, 2026, 11:59 PM"
TIMES = [f"{day}, {time}" for day in ("%d %B %Y", "%B %d, %Y") for time in ("%I:%M %p", "%H:%M")]
NO_WORKSHEET = (
    "Moodle numbers people anew in each assignment: collect with `rlcourse collect` and this "
    "assignment's grading worksheet, --worksheet"
)
OTHER_WORKSHEET = "the worksheet has no such participant: download it from the same assignment"


class Moodle(Platform):
    name = "Moodle"
    id_columns = ("ID number", "Username", "Email address")
    number_column = PARTICIPANTS
    comments = "Feedback comments"

    def files(self, archive: Archive, worksheet: Worksheet | None) -> Iterable[File] | None:
        found = {name: NAME.fullmatch(_with_folder(name)) for name in archive.names}
        if not mostly(found.values()):
            return None
        rows = self._rows(worksheet.table) if worksheet else {}
        return [self._file(archive, name, match, worksheet, rows) for name, match in found.items()]

    def _rows(self, table: Table) -> dict[str, list[str]]:
        """{number of a participant: their row}."""
        if table.column(HANDED_IN) is None or not self.has_made(table):
            raise UserError(
                f"this is not a worksheet that says who handed in when, with the columns "
                f"{PARTICIPANTS}, {FULL_NAME} and {HANDED_IN}: download Moodle's grading worksheet "
                "in English, from the assignment"
            )
        return {participant(table, row): row for row in table.rows}

    def _file(self, archive, name, match, worksheet: Worksheet | None, rows) -> File:
        if not match:
            return File(archive, name, last(name))
        number, file = match.groups()
        owner, row = f"participant {number}", rows.get(number)
        if worksheet is None or row is None:
            problem = OTHER_WORKSHEET if worksheet else NO_WORKSHEET
            return File(archive, name, file, owner, problem=problem)
        ids, text = self.ids(worksheet.table, row), worksheet.table.field(row, HANDED_IN)
        time = in_utc(text, worksheet.zone)
        doubt = f"its time in the table cannot be read: {one_line(text, 60)}"
        doubt = "" if time else f"it counts as on time, because {doubt}"
        return File(archive, name, file, owner, tuple(ids), time=time, doubt=doubt)

    def has_made(self, table: Table) -> bool:
        if table.column(PARTICIPANTS) is None or table.column(FULL_NAME) is None:
            return False
        if all(table.column(name) is None for name in self.id_columns):
            raise UserError(
                "Moodle's table must have one of the columns ID number, Username and Email address,"
                f" because the numbers in {PARTICIPANTS} differ from one assignment to the next: "
                "ask your Moodle's administrator to show teachers one of them (showuseridentity), "
                "and download it again"
            )
        return True

    def called(self, table: Table, row: list[str]) -> str:
        return table.field(row, FULL_NAME)

    def person(self, table: Table, row: list[str]) -> Person:
        called, mail = self.called(table, row), table.field(row, "Email address")
        first, _, name = called.rpartition(" ")
        return Person(tuple(self.ids(table, row)), name, first, mail)

    def column(self, table: Table, lesson: str, title: str, wanted: str | None) -> int:
        if (at := table.column(GRADE)) is None:
            raise UserError(
                f"the worksheet has no column {GRADE}: choose Download grading worksheet in the "
                "assignment, with Moodle in English"
            )
        return at

    def is_fixed(self, table: Table, row: list[str], at: int) -> bool:
        """Who was graded in Moodle's own gradebook is not graded by a worksheet."""
        return table.field(row, CHANGEABLE).casefold() == "no"

    def write_feedback(self, out: Path, table: Table, pages: Iterable[Page]) -> None:
        """Folders are named ``NAME_PARTICIPANT_assignfeedback_file``, by which Moodle finds the
        person."""
        with write_errors_explained(out), zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as made:
            for page, student, row in pages:
                name = NAME_IN_ZIP.sub(" ", student).strip() or "student"
                folder = f"{name}_{participant(table, row)}_assignfeedback_file"
                made.write(page, f"{folder}/{page.name}")


def _with_folder(name: str) -> str:
    """A file, with the directory that names its owner, if any."""
    parts = PurePosixPath(name).parts
    at = next((i for i, part in enumerate(parts) if "_assignsubmission_file" in part), -1)
    return "/".join((parts[at], parts[-1])) if 0 <= at < len(parts) - 1 else last(name)


def participant(table: Table, row: list[str]) -> str:
    """The number of whose row it is; it holds for this worksheet's assignment alone."""
    return table.field(row, PARTICIPANTS).removeprefix("Participant ")


def in_utc(text: str, zone: tzinfo | None) -> datetime | None:
    """A time as Moodle writes it in English, read in `zone`; None if it is no time."""
    plain = re.sub(r"[\s\u00a0\u202f]+", " ", text[:100]).strip()
    plain = re.sub(r"^[A-Za-z]+day, ?", "", plain)
    for form in TIMES:
        try:
            local = datetime.strptime(plain, form)
            return (local.replace(tzinfo=zone) if zone else local).astimezone(UTC)
        except (ValueError, OverflowError, OSError):
            continue
    return None
