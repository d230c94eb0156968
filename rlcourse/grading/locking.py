"""Locks between graders: held by a process, and released when it ends, however it ends."""

import errno
import os
import shutil
import stat
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from rlcourse.errors import UserError
from rlcourse.files import lock

SCRATCH = "rlcourse-grade-"
NO_LOCKS = (errno.ENOLCK, errno.ENOSYS, errno.EOPNOTSUPP)
SETTLED = 60.0  # seconds after which an unlocked directory was left by a killed grader


@contextmanager
def only_one(path: Path, seconds: float, otherwise: str) -> Iterator[None]:
    """Hold the lock `path`; ``UserError`` with `otherwise` if another process keeps it too long.

    If the file system does not support locks, there is none, and grading continues.
    """
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)  # of autograded/: it is private
    try:
        held = lock(path, otherwise, seconds)
    except OSError as error:
        if error.errno not in NO_LOCKS:
            raise
        yield
        return
    try:
        yield
    finally:
        held.release()


@contextmanager
def scratch_directory() -> Iterator[Path]:
    """A temporary directory; those of graders that were killed are removed first."""
    remove_abandoned(Path(tempfile.gettempdir()))
    with tempfile.TemporaryDirectory(prefix=SCRATCH) as name:
        directory = Path(name)
        with only_one(directory / ".lock", 0, "the directory was made just now"):
            directory.chmod(0o755)
            yield directory


def remove_abandoned(where: Path) -> None:
    """Remove our scratch directories whose grader is gone, as their unlocked locks show."""
    for directory in where.glob(f"{SCRATCH}*"):
        with suppress(OSError, UserError):
            found = directory.lstat()
            ours = stat.S_ISDIR(found.st_mode) and found.st_uid == os.geteuid()
            settled = time.time() - found.st_mtime > SETTLED
            if ours and settled and (directory / ".lock").exists():
                held = lock(directory / ".lock", "its grader is still running")
                shutil.rmtree(directory, ignore_errors=True)
                held.release()
