"""When each student handed in, from the table of submission times that a platform exports.

Moodle's archives do not say who is late; the grading worksheet of the same assignment does, to the
minute and in the time zone of the person who exported it.
"""

import re
from collections import defaultdict
from dataclasses import dataclass, field
from datetime import UTC, datetime, tzinfo
from zoneinfo import ZoneInfo

from rlcourse.errors import UserError
from rlcourse.grading.names import alike, one_line
from rlcourse.grading.table import PARTICIPANTS, WORKSHEET_IDS, Table, participant_in

HANDED_IN = "Last modified (submission)"
NOTHING = ("", "-")  # what Moodle writes for students who have handed in nothing
MONTHS = (
    "january", "february", "march", "april", "may", "june", "july", "august", "september",
    "october", "november", "december",
)  # fmt: skip
# "Thursday, 1 October 2026, 11:59 PM"; in American English "Thursday, October 1, 2026, 11:59 PM"
_WRITTEN = re.compile(
    r"(?:[a-z]+, ?)?"
    r"(?:(?P<day>\d{1,2}) (?P<month>[a-z]+)|(?P<us_month>[a-z]+) (?P<us_day>\d{1,2}),)"
    r" (?P<year>\d{4}), (?P<hour>\d{1,2}):(?P<minute>\d\d)(?: ?(?P<half>am|pm))?",
    re.ASCII,
)


class NoTime(Exception):
    """Why the table does not say when somebody handed in."""


@dataclass(frozen=True)
class Times:
    """What a table says about each student: for each of its columns of ids, {id: text}."""

    columns: tuple[str, ...]
    written: dict[str, dict[str, list[str]]] = field(repr=False)
    zone: tzinfo | None = None  # None: this machine's

    @property
    def zone_name(self) -> str:
        machines = datetime.now().astimezone().tzname()
        return str(self.zone) if self.zone else f"this machine's time zone, {machines}"

    def of(self, student: str, participant: bool) -> datetime:
        """When `student` handed in, in UTC; a `participant`, by Moodle's number alone.

        Raises:
            NoTime: the table does not say, or is ambiguous.
        """
        columns = [c for c in self.columns if (c == PARTICIPANTS) == participant]
        found = {text for c in columns for text in self.written[c].get(alike(student), ())}
        if not found:
            raise NoTime("the table of times has no row for this student")
        if len(found) > 1:
            raise NoTime("the table of times has two rows that may be this student's")
        (text,) = found
        return in_utc(text, self.zone)


def read_times(worksheet: Table, zone: str | None = None) -> Times:
    """The times in Moodle's grading `worksheet`, which are those of `zone`.

    Raises:
        UserError: it is not such a table, or there is no such zone.
    """
    at = worksheet.column(HANDED_IN)
    if at is None or worksheet.column(PARTICIPANTS) is None:
        raise UserError(
            f"this is not a worksheet that says who handed in when, with the columns {PARTICIPANTS}"
            f" and {HANDED_IN}: download Moodle's grading worksheet in English, from the assignment"
        )
    columns = (PARTICIPANTS, *(c for c in WORKSHEET_IDS if worksheet.column(c) is not None))
    written = {column: _by_id(worksheet, column, at) for column in columns}
    return Times(columns, written, None if zone is None else _zone(zone))


def _by_id(worksheet: Table, column: str, when: int) -> dict[str, list[str]]:
    found: dict[str, list[str]] = defaultdict(list)
    for row in worksheet.rows:
        number = participant_in(worksheet, row) if column == PARTICIPANTS else ""
        if name := alike(number or worksheet.field(row, column)):
            found[name].append(row[when])
    return found


def _zone(name: str) -> ZoneInfo:
    try:
        return ZoneInfo(name)
    except (LookupError, ValueError, OSError):
        raise UserError(
            f"--zone {one_line(name, 60)}: no such time zone; write one as Europe/Berlin"
        ) from None


def in_utc(text: str, zone: tzinfo | None) -> datetime:
    """A time as Moodle writes it in English, read in `zone`.

    Raises:
        NoTime: it is not a time.
    """
    plain = re.sub(r"[\s\u00a0\u202f]+", " ", text).strip().lower()
    if plain in NOTHING:
        raise NoTime("the table of times has no time for this student")
    parts = _WRITTEN.fullmatch(plain)
    try:
        if not parts:
            raise ValueError
        hour, half = int(parts["hour"]), parts["half"]
        if half and not 1 <= hour <= 12:
            raise ValueError
        local = datetime(
            int(parts["year"]),
            MONTHS.index(parts["month"] or parts["us_month"]) + 1,
            int(parts["day"] or parts["us_day"]),
            hour % 12 + 12 * (half == "pm") if half else hour,
            int(parts["minute"]),
        )
        return (local.replace(tzinfo=zone) if zone else local).astimezone(UTC)
    except (ValueError, OverflowError, OSError):
        raise NoTime(f"its time in the table cannot be read: {one_line(text, 60)}") from None
