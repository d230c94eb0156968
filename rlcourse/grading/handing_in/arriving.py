"""Submissions from nbgrader's exchange, where whoever has a terminal writes what they like.

A student's own server writes the folder of a submission, its name, and the time that it states.
A student cannot choose who owns the folder or when it was last changed: the file system records
both.
"""

import os
import shutil
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

from nbgrader.exchange.default import ExchangeCollect
from nbgrader.utils import ignore_patterns, parse_utc

from rlcourse.files import replace_bytes
from rlcourse.grading.books.due import written
from rlcourse.grading.handing_in.files import MOST_FILES, Rejected, read_bytes
from rlcourse.grading.handing_in.handed_in import ARRIVAL
from rlcourse.grading.handing_in.names import one_line

NOBODY = ""


class Collect(ExchangeCollect):
    """nbgrader's own, which also notes when each submission arrived. It leaves out what belongs to
    somebody other than the student it is named after, and what cannot be copied; the log says so.
    """

    def init_src(self) -> None:
        super().init_src()
        self.src_records: list[dict] = [r for r in self.src_records if r["username"] != NOBODY]

    def _path_to_record(self, path: str) -> dict:
        if reason := self._why_not(Path(path)):
            self.log.error("%s is not collected: %s", one_line(path), reason)
            return {"username": NOBODY, "filename": "", "timestamp": datetime.min}
        return super()._path_to_record(path)

    def _why_not(self, folder: Path) -> str:
        """Why this is no submission of the student it is named after; "" if it is one."""
        student, *rest = folder.name.rsplit("+", 3)
        try:
            parse_utc(rest[1])
        except (LookupError, ValueError, OverflowError):
            return "its name is not one that nbgrader gives"
        if folder.is_symlink() or not folder.is_dir():
            return "it is not a folder"
        if self.check_owner and (owner := other_owner(folder)) and owner != student:
            return f"it is named after {one_line(student)} but belongs to {owner}"
        return ""

    def do_copy(self, src: str, dest: str, log: object = None) -> None:
        try:
            time = last_change(Path(src))  # before it is copied, as it may change meanwhile
            Path(dest).mkdir()
            for name, data in self._files(Path(src)):
                replace_bytes(Path(dest, name), data)
            replace_bytes(Path(dest, ARRIVAL), written(time).encode())
            if self.coursedir.groupshared:
                for path in (Path(dest), *Path(dest).iterdir()):
                    path.chmod(path.stat().st_mode | (0o2770 if path.is_dir() else 0o660))
        except (OSError, RuntimeError, Rejected) as error:
            shutil.rmtree(dest, ignore_errors=True)
            self.log.error("%s could not be collected: %s", one_line(src), error)

    def _files(self, source: Path) -> Iterator[tuple[str, bytes]]:
        """(name, content) of its files; folders in it are left out. Through a link, the grader
        would read files that the student may not read, so a submission with a link is refused."""
        names = os.listdir(source)
        if len(names) > MOST_FILES:
            raise RuntimeError(f"more than {MOST_FILES} files")
        of = self.coursedir
        ignored = ignore_patterns(of.ignore, of.include, of.max_file_size, self.log)
        left = 1000 * of.max_dir_size
        for name in sorted({*names} - {*ignored(str(source), names)}):
            if (source / name).is_dir() and not (source / name).is_symlink():
                continue
            data = read_bytes(source.parent, source.name, name, largest=left)
            left -= len(data)
            yield name, data


def other_owner(path: Path) -> str:
    """The name of the user who owns a file; "" if that is this process's user or the superuser, who
    may have put it there for a student, or somebody without a name on this machine."""
    import pwd  # absent on Windows, which has no exchange

    number = path.lstat().st_uid
    try:
        return "" if number in (0, os.geteuid()) else pwd.getpwuid(number).pw_name
    except KeyError:
        return ""


def last_change(folder: Path) -> datetime:
    """The latest time at which anything in a folder, or the folder, was changed; in UTC."""
    return datetime.fromtimestamp(max(_changes(folder)), UTC)


def _changes(folder: Path) -> Iterator[float]:
    yield folder.lstat().st_ctime
    for place, folders, files in os.walk(folder):
        for name in folders + files:
            yield os.lstat(os.path.join(place, name)).st_ctime
