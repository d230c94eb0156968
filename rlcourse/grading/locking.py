"""Locks between graders: held by a process, and gone with it however it ends."""

import os
import shutil
import stat
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
        while _locked(file) is False:
            if time.monotonic() >= end:
                raise UserError(otherwise)
            time.sleep(0.02)
        yield


def _locked(file) -> bool | None:
    """Whether the lock is ours now; None where the system or the file system has no locks."""
    try:
        import fcntl
    except ImportError:
        return None
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:
        return None
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
    """Remove scratch directories of ours whose grader is gone: nobody holds their lock."""
    for directory in where.glob(f"{SCRATCH}*"):
        with suppress(OSError):
            found = directory.lstat()
            ours = stat.S_ISDIR(found.st_mode) and found.st_uid == os.geteuid()
            if ours and time.time() - found.st_mtime > SETTLED:
                with (directory / ".lock").open("r") as file:
                    if _locked(file) is True:
                        shutil.rmtree(directory, ignore_errors=True)
