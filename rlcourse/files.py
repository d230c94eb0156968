"""Writing that leaves either the old file or the new one, and says what to do when it fails."""

import contextlib
import errno
import json
import os
import secrets
import shutil
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

from filelock import FileLock, Timeout

from rlcourse.errors import UserError

TEMPORARY = ".partial-"  # files that begin so were left by a kill and can be deleted


@contextlib.contextmanager
def write_errors_explained(path: Path) -> Iterator[None]:
    """Turn a failure to write `path` into a ``UserError`` that says what to do.

    Not only an ``OSError``: safetensors and torch report a full disk by their own exceptions.
    """
    try:
        yield
    except UserError:
        raise
    except Exception as error:
        failure = _failure_to_write(error)
        if failure is None:
            raise
        full = getattr(failure, "errno", None) in (errno.ENOSPC, errno.EDQUOT)
        if full or "No space left" in str(failure) or "os error 28" in str(failure):
            raise UserError(
                f"the disk is full: {path} could not be written; free some space, then run the "
                "same command again"
            ) from error
        raise UserError(f"{path} could not be written: {failure}") from error


def _failure_to_write(error: BaseException | None) -> BaseException | None:
    """The operating system's error, wherever a library has put it; None if there was none.

    torch.save ends with a RuntimeError about positions in the file, raised while the OSError was
    handled; safetensors wraps it in its own exception.
    """
    while error is not None:
        if isinstance(error, OSError) or type(error).__name__ == "SafetensorError":
            return error
        error = error.__cause__ or error.__context__
    return None


def in_use(directory: Path | None) -> contextlib.ExitStack:
    """`hold` the directory, if there is one, while something is written to it."""
    held = contextlib.ExitStack()
    if directory is not None:
        held.callback(hold(directory).release)
    return held


def hold(directory: Path) -> FileLock:
    """A lock on `directory` that keeps other processes out until it is released or collected.

    Raises:
        UserError: another process holds it.
    """
    busy = f"{directory} is in use by another process: wait until it ends, or stop it"
    with write_errors_explained(directory):
        return lock(directory / f"{TEMPORARY}lock", busy)


def lock(path: Path, busy: str, seconds: float = 0.0) -> FileLock:
    """Take the lock `path`; the system releases it when this process ends, however it ends.

    Raises:
        UserError: another process holds it for that many seconds; `busy` is the message.
        OSError: it cannot be written, or the file system does not support locks.
    """
    try:
        taken = FileLock(path, timeout=seconds)
        taken.acquire(poll_interval=0.02)
    except Timeout:
        raise UserError(busy) from None
    return taken


def replace_bytes(path: Path, content: bytes, mode: int = 0o666) -> None:
    """Make `content` the whole of file `path`, byte for byte: the one atomic write of the course.

    `mode` is that of the file, less what the umask takes.

    A reader, a kill or a power cut sees the old file or the new one, never half of it. Of several
    processes that write at once, one wins. What was written before a kill stays next to `path`,
    under a name that begins with ``TEMPORARY``.

    Raises:
        OSError: it cannot be written; the old file is unchanged, and nothing is left next to it.
    """
    temporary = path.with_name(f"{TEMPORARY}{path.name}.{secrets.token_hex(4)}")
    try:
        with open(temporary, "xb", opener=partial(os.open, mode=mode)) as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, path)
    except BaseException:
        with contextlib.suppress(OSError):
            temporary.unlink()
        raise


def write_text(path: Path, text: str, mode: int = 0o666) -> None:
    """`replace_bytes` with `text` in UTF-8; line endings stay as they are.

    Raises:
        UserError: it cannot be written.
    """
    with write_errors_explained(path):
        replace_bytes(path, text.encode(), mode)


def write_json(path: Path, value, indent: int | None = 2) -> None:
    """`write_text` of `value` as JSON, indented for people to read unless `indent` is None."""
    write_text(path, json.dumps(value, indent=indent, ensure_ascii=False) + "\n")


def write_directory(path: Path, fill: Callable[[Path], None]) -> None:
    """Make directory `path` from what `fill(temporary directory)` writes, all of it or nothing."""
    temporary = path.with_name(TEMPORARY + path.name)
    with write_errors_explained(path):
        try:
            shutil.rmtree(temporary, ignore_errors=True)
            temporary.mkdir(parents=True)
            fill(temporary)
            for file in temporary.rglob("*"):
                sync(file)
            sync(temporary)
            if path.exists():
                shutil.rmtree(path)
            os.rename(temporary, path)
            sync(path.parent)
        except BaseException:
            shutil.rmtree(temporary, ignore_errors=True)
            raise


def sync(path: Path) -> None:
    """Make sure that what was written to `path` is on the disk."""
    if os.name == "nt" and path.is_dir():
        return  # Windows cannot open directories
    handle = os.open(path, os.O_RDWR if path.is_file() else os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
