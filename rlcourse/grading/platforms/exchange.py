"""nbgrader's exchange as a platform: what students hand in there, and feedback back to them.

Whoever has a terminal writes there what they like. A student's own server writes the folder of a
submission, its name, and the time that it states. A student cannot choose who owns the folder or
when it was last changed: the file system records both.
"""

import os
import re
import shutil
from collections.abc import Iterator
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from glob import glob
from pathlib import Path

from nbgrader.exchange.default import ExchangeCollect, ExchangeReleaseFeedback
from nbgrader.utils import ignore_patterns, parse_utc, temp_attrs

from rlcourse.files import replace_bytes
from rlcourse.grading.books.due import written
from rlcourse.grading.books.grades import waiting_in
from rlcourse.grading.handing_in.student_folder import SECRET, TIMESTAMP
from rlcourse.grading.handing_in.untrusted_files import MOST_FILES, read_bytes
from rlcourse.grading.names import one_line
from rlcourse.grading.rejected import Rejected
from rlcourse.moments import moment

NOBODY = ""
SOON = timedelta(minutes=10)  # within which what is handed in has been copied
ELSEWHERE = (
    "these did not hand in through the exchange, so send them their pages in feedback/ yourself"
)
WAITING = (
    "points by hand are still to be given or confirmed, so these pages are not released (with "
    "--student NAME, one is released all the same)"
)


class Collect(ExchangeCollect):
    """nbgrader's own, which does not believe in a time before that of the files. It leaves out what
    belongs to somebody other than the student it is named after, and what cannot be copied; the log
    says so."""

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
            self._keep_time(Path(dest, TIMESTAMP), time)
        except (OSError, RuntimeError, Rejected) as error:
            shutil.rmtree(dest, ignore_errors=True)
            self.log.error("%s could not be collected: %s", one_line(src), error)

    def _keep_time(self, note: Path, time: datetime) -> None:
        """The time that a student's server has stated counts, unless the files came later."""
        with suppress(OSError, ValueError, LookupError, OverflowError):  # which grading reports
            stated = moment(note.read_text("utf-8").strip())
            if time - stated > SOON:
                student, *times = (note.parents[1].name, stated.astimezone(UTC), time)
                self.log.warning(
                    "%s says %s, but its files were last changed at %s, which counts: if you "
                    "believe the earlier time, write it into timestamp.txt and grade again",
                    *(one_line(student), *map(written, times)),
                )
                replace_bytes(note, written(time).encode())

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
    changes = [path.lstat().st_ctime for path in (folder, *folder.rglob("*"))]
    return datetime.fromtimestamp(max(changes), UTC)


class ReleaseFeedback(ExchangeReleaseFeedback):
    """nbgrader's own, which stops at the first student whose work came from elsewhere: it has no
    secret by which only that student finds the page. Here they are named and left out, and so are
    those whose answers wait for points by hand, for which their pages show 0."""

    def copy_files(self):
        only, elsewhere = self.coursedir.student_id, sorted(self._elsewhere())
        if only in elsewhere:
            self.fail(f"{ELSEWHERE}: {only}")
        waiting = waiting_in(self.coursedir) if only == "*" else []
        for why, students in ((ELSEWHERE, elsewhere), (WAITING, waiting)):
            if students:
                self.log.warning("%s: %s", why, ", ".join(students))
        left_out = [self.coursedir.student_id_exclude, *elsewhere, *waiting]
        with temp_attrs(self.coursedir, student_id_exclude=",".join(filter(None, left_out))):
            super().copy_files()

    def _elsewhere(self) -> Iterator[str]:
        directory, lesson = self.coursedir.feedback_directory, self.coursedir.assignment_id
        pattern = self.coursedir.format_path(directory, "(?P<student>.*)", lesson, escape=True)
        for folder in glob(self.src_path):
            found = re.fullmatch(pattern, folder)
            if found and not all((Path(folder) / name).is_file() for name in (TIMESTAMP, SECRET)):
                yield found["student"]
