"""A moment as a person or nbgrader writes it: a date, a time of day, and a time zone."""

import re
from datetime import UTC, datetime, tzinfo
from zoneinfo import ZoneInfo

# The zone by its offset or name
_WRITTEN = re.compile(
    r"(\d{4}-\d\d-\d\d[ T]\d\d:\d\d(?::\d\d(?:\.\d{1,6})?)?)"
    r"(?: ?(Z|[+-]\d\d:?\d\d)| ([A-Za-z][A-Za-z_]{0,20}(?:/[A-Za-z][A-Za-z_-]{0,20}){0,2}))?",
    re.ASCII,
)


def moment(text: str, default: tzinfo | None = UTC) -> datetime:
    """That moment, in the zone in which it is written; if none is, in `default`.

    Raises:
        ValueError, OverflowError, LookupError: it is no moment, its zone is unknown, or it has no
            zone and `default` is None.
    """
    parts = _WRITTEN.fullmatch(text)
    if not parts:
        raise ValueError("no moment")
    found = datetime.fromisoformat(parts[1] + (parts[2] or ""))
    if parts[2]:
        return found
    zone = ZoneInfo(parts[3]) if parts[3] else default
    if zone is None:
        raise ValueError("no time zone")
    return found.replace(tzinfo=zone)
