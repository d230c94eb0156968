"""When work really came through nbgrader's exchange, next to the time that it says.

A student's own server writes the time of a submission, into the name of a folder that belongs to
the student and into ``timestamp.txt``. Whoever can use a terminal can write another one. When a
file was last changed there, its content or its name, is written by the file system, and only a
superuser can set it back.
"""

import os
import shutil
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

from nbgrader.exchange.default import ExchangeCollect

from rlcourse.files import replace_bytes
from rlcourse.grading.books.due import written
from rlcourse.grading.handing_in.handed_in import ARRIVAL


class Collect(ExchangeCollect):
    """nbgrader's own, which also notes when each submission came."""

    def do_copy(self, src: str, dest: str, log: object = None) -> None:
        time = last_change(Path(src))  # first: what changes while it is copied is for the next time
        super().do_copy(src, dest, log)
        note = Path(dest) / ARRIVAL
        if note.is_dir() and not note.is_symlink():  # the student's, of that name
            shutil.rmtree(note)
        replace_bytes(note, written(time).encode())


def last_change(folder: Path) -> datetime:
    """The latest time at which anything in a folder, or the folder, was changed; in UTC."""
    return datetime.fromtimestamp(max(_changes(folder)), UTC)


def _changes(folder: Path) -> Iterator[float]:
    yield folder.lstat().st_ctime
    for place, folders, files in os.walk(folder):
        for name in folders + files:
            yield os.lstat(os.path.join(place, name)).st_ctime
