"""Writing that leaves either the old file or the new one, and says what to do when it cannot."""

import contextlib
import errno
import json
import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

from filelock import FileLock, Timeout

from rlcourse.errors import UserError

TEMPORARY = ".partial-"  # whatever begins so was left by a kill and means nothing


@contextlib.contextmanager
def write_errors_explained(path: Path) -> Iterator[None]:
    """Turn a failure to write `path` into a ``UserError`` that says what to do.

    Besides ``OSError``: safetensors and torch report a full disk in exceptions of their own.
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
                f"the disk is full: {path} could not be written; free some space, "
                "then run the same command with --resume"
            ) from error
        raise UserError(f"{path} could not be written: {failure}") from error


def _failure_to_write(error: BaseException | None) -> BaseException | None:
    """What the operating system said, wherever a library has put it; None if it said nothing.

    torch.save ends with a RuntimeError about positions in the file, raised while the OSError was
    handled; safetensors wraps it in an exception of its own.
    """
    while error is not None:
        if isinstance(error, OSError) or type(error).__name__ == "SafetensorError":
            return error
        error = error.__cause__ or error.__context__
    return None


@contextlib.contextmanager
def in_use(directory: Path | None) -> Iterator[None]:
    """`hold` the directory, if there is one, for as long as something is written to it."""
    lock = None if directory is None else hold(directory)
    try:
        yield
    finally:
        if lock is not None:
            lock.release()


def hold(directory: Path) -> FileLock:
    """A lock on `directory` that keeps other processes out until it is released or forgotten.

    Raises:
        UserError: another process holds it.
    """
    busy = f"{directory} is in use by another process: wait until it ends, or stop it"
    with write_errors_explained(directory):
        return lock(directory / f"{TEMPORARY}lock", busy)


def lock(path: Path, busy: str, seconds: float = 0.0) -> FileLock:
    """Take the lock `path`; the system lets go of it when this process ends, however it ends.

    Raises:
        UserError: another one holds it for so many seconds; `busy` is what it says.
        OSError: it cannot be written, or the file system has no locks.
    """
    try:
        taken = FileLock(path, timeout=seconds)
        taken.acquire(poll_interval=0.02)
    except Timeout:
        raise UserError(busy) from None
    return taken


def write_text(path: Path, text: str) -> None:
    """Write a whole file so that a reader or a kill sees the old text or the new, never half."""
    temporary = path.with_name(TEMPORARY + path.name)
    with write_errors_explained(path):
        try:
            with temporary.open("w", encoding="utf-8") as file:
                file.write(text)
                file.flush()
                os.fsync(file.fileno())
            os.replace(temporary, path)
        except BaseException:
            temporary.unlink(missing_ok=True)
            raise


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
    """Have what was written to `path` on the disk."""
    if os.name == "nt" and path.is_dir():
        return  # Windows opens no directories
    handle = os.open(path, os.O_RDWR if path.is_file() else os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
