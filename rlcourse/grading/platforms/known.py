"""The platforms that there are: which one has made an archive or a table."""

import re
from collections.abc import Iterable

from rlcourse.errors import UserError
from rlcourse.grading.platforms.archives import Archive, last
from rlcourse.grading.platforms.canvas import Canvas
from rlcourse.grading.platforms.moodle import Moodle
from rlcourse.grading.platforms.platform import File, Platform, Worksheet
from rlcourse.grading.table import Table

PLATFORMS: tuple[Platform, ...] = (Moodle(), Canvas())
_PLAIN = re.compile(r"([^/]+?)_([0-9]{2}_[^/]+)", re.DOTALL)  # ada_02_policy_gradient.ipynb


def files_in(archive: Archive, worksheet: Worksheet | None = None) -> Iterable[File]:
    """The files of a platform's archive, or of any other, by ``STUDENT_LESSON.ipynb``."""
    for platform in PLATFORMS:
        if (files := platform.files(archive, worksheet)) is not None:
            return files
    return (_plain(archive, name) for name in archive.names)


def _plain(archive: Archive, name: str) -> File:
    found = _PLAIN.fullmatch(last(name))
    if not found:
        return File(archive, name, last(name))
    return File(archive, name, found[2], found[1], (found[1],))


def platform_of(table: Table) -> Platform:
    """The platform that a table is from."""
    for platform in PLATFORMS:
        if platform.has_made(table):
            return platform
    raise UserError(
        "this is neither Canvas's exported gradebook, with the columns Student and ID, nor "
        "Moodle's grading worksheet in English, with Identifier and Full name: export it again"
    )
