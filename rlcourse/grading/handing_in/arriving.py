"""When a submission really arrived in nbgrader's exchange, besides the time that it states.

A student's own server writes that time, into ``timestamp.txt`` and into the name of a folder that
belongs to the student, and anyone with a terminal can write another one. The file system itself
records when a file or its name was last changed, and only a superuser can set that back.
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
    """nbgrader's own, which also notes when each submission arrived, and goes on after one that
    cannot be copied: unreadable for us, too large, or changed by its owner at that moment."""

    def do_copy(self, src: str, dest: str, log: object = None) -> None:
        try:
            time = last_change(Path(src))  # before it is copied, as it may change meanwhile
            super().do_copy(src, dest, log)
            _make_ours(Path(dest))
            self._note(Path(dest) / ARRIVAL, time)
        except (OSError, RuntimeError) as error:
            _make_ours(Path(dest))
            shutil.rmtree(dest, ignore_errors=True)
            self.log.error("%s could not be collected: %s", src, error)

    @staticmethod
    def _note(note: Path, time: datetime) -> None:
        if note.is_dir() and not note.is_symlink():  # the student's, of that name
            shutil.rmtree(note)
        replace_bytes(note, written(time).encode())


def _make_ours(folder: Path) -> None:
    """Let its owner write in a copied folder: the student's permissions were copied with it."""
    for place, _, _ in os.walk(folder):
        os.chmod(place, os.stat(place).st_mode | 0o700)


def last_change(folder: Path) -> datetime:
    """The latest time at which anything in a folder, or the folder, was changed; in UTC."""
    return datetime.fromtimestamp(max(_changes(folder)), UTC)


def _changes(folder: Path) -> Iterator[float]:
    yield folder.lstat().st_ctime
    for place, folders, files in os.walk(folder):
        for name in folders + files:
            yield os.lstat(os.path.join(place, name)).st_ctime
