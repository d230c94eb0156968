"""The gradebook's file: opened by nbgrader, private from the start, and told from a lost one."""

import errno
import os
import sqlite3
import stat
from contextlib import suppress
from pathlib import Path

from nbgrader.api import Gradebook
from nbgrader.coursedir import CourseDirectory
from sqlalchemy.engine import make_url

from rlcourse.errors import UserError
from rlcourse.files import write_errors_explained

LOST = (
    "{path} is damaged ({why}): put the copy from your last backup in its place, or move it away "
    "and run `rlcourse grade` for each lesson, which enters what is in autograded/; points by hand "
    "are in the gradebook alone."
)
TABLES = "SELECT student.id, assignment.id, grade.id FROM student, assignment, grade LIMIT 0"


def open_gradebook(directory: CourseDirectory, url: str = "") -> Gradebook:
    """The course's gradebook, which is made if there is none.

    Args:
        url: its address with further settings; by default ``directory.db_url``.

    Raises:
        UserError: the file is no gradebook, or it cannot be written.
    """
    path = file_of(directory)
    if path is not None:
        with write_errors_explained(path):
            _make_private(path)
        _verify(path)
    return Gradebook(url or directory.db_url, directory.course_id)


def file_of(directory: CourseDirectory) -> Path | None:
    """The gradebook's file; None if it is on a server, or in memory."""
    address = make_url(directory.db_url)
    file = address.database if address.get_backend_name() == "sqlite" else None
    return Path(file) if file and file != ":memory:" else None


def is_absent(directory: CourseDirectory) -> bool:
    """Whether nobody has made the gradebook yet, which to open it would."""
    path = file_of(directory)
    return path is not None and not path.exists()


def _make_private(path: Path) -> None:
    """Make a new file, empty and readable by its owner alone, of which SQLite makes a gradebook."""
    if not path.exists():
        os.close(os.open(path, os.O_WRONLY | os.O_CREAT, 0o600))
    elif path.is_file() and (mode := path.stat().st_mode) & 0o007:  # Formgrader made it
        with suppress(OSError):
            path.chmod(stat.S_IMODE(mode) & ~0o007)
    for needed in (path, path.parent):  # SQLite writes its journal beside the file
        if not os.access(needed, os.W_OK):
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(needed))


def _verify(path: Path) -> None:
    """Raises ``UserError`` if the file is no database, part of one, or another program's."""
    if not path.is_file():
        raise UserError(LOST.format(path=path, why="it is not an ordinary file"))
    try:
        database = sqlite3.connect(path)
        try:
            ((found,),) = database.execute("PRAGMA quick_check(1)").fetchall()
            ((tables,),) = database.execute("SELECT count(*) FROM sqlite_master").fetchall()
            if tables and found == "ok":
                database.execute(TABLES)
        finally:
            database.close()
    except sqlite3.OperationalError as error:
        if not str(error).startswith("no such"):  # another program writes: waited for later
            return
        found = f"it is not nbgrader's: {error}"
    except sqlite3.DatabaseError as error:
        found = str(error)
    if found != "ok":
        raise UserError(LOST.format(path=path, why=" ".join(found.split())))
