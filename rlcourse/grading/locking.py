"""Locks between graders: held by a process, and gone with it however it ends."""

import os
import shutil
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from rlcourse.errors import UserError

SCRATCH = "rlcourse-grade-"
SETTLED = 60.0  # seconds after which a directory that nobody holds was left by a killed grader


@contextmanager
def only_one(path: Path, seconds: float, otherwise: str) -> Iterator[None]:
    """Hold the lock `path`; ``UserError`` with `otherwise` where another holds it for so long."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("a") as file:
        end = time.monotonic() + seconds
        while not _locked(file):
            if time.monotonic() >= end:
                raise UserError(otherwise)
            time.sleep(0.02)
        yield


def _locked(file) -> bool:
    """Whether the lock is ours now; also where the system or the file system has none."""
    try:
        import fcntl
    except ImportError:
        return True
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:
        pass
    return True


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
    """Remove scratch directories whose grader is gone: nobody holds their lock."""
    for directory in where.glob(f"{SCRATCH}*"):
        with suppress(OSError, UserError):
            if time.time() - directory.lstat().st_mtime > SETTLED and not directory.is_symlink():
                lock = directory / ".lock"
                if lock.is_file() and directory.stat().st_uid == os.getuid():
                    with only_one(lock, 0, "its grader is at work"):
                        shutil.rmtree(directory, ignore_errors=True)
