"""Locks between graders: held by a process, and released when it ends, however it ends."""

import errno
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from rlcourse.files import lock, write_errors_explained

NO_LOCKS = (errno.ENOLCK, errno.ENOSYS, errno.EOPNOTSUPP)


@contextmanager
def only_one(path: Path, seconds: float, otherwise: str) -> Iterator[None]:
    """Hold the lock `path`; ``UserError`` with `otherwise` if another process keeps it too long.

    If the file system does not support locks, there is none, and grading continues.
    """
    held = None
    with write_errors_explained(path):
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)  # of autograded/: it is private
        try:
            held = lock(path, otherwise, seconds)
        except OSError as error:
            if error.errno not in NO_LOCKS:
                raise
    try:
        yield
    finally:
        if held:
            held.release()


@contextmanager
def scratch_directory() -> Iterator[Path]:
    """A temporary directory in which processes of other users find what is theirs to read."""
    with tempfile.TemporaryDirectory(prefix="rlcourse-grade-") as name:
        Path(name).chmod(0o755)
        yield Path(name)
