"""Writing that leaves either the old file or the new one, and says what to do when it cannot."""

import contextlib
import errno
import json
import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

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
        text = str(error)
        own_kind = type(error).__name__ == "SafetensorError" or "PytorchStreamWriter" in text
        if not isinstance(error, OSError) and not own_kind:
            raise
        full = getattr(error, "errno", None) in (errno.ENOSPC, errno.EDQUOT)
        if full or "No space left" in text or "os error 28" in text:
            raise UserError(
                f"the disk is full: {path} could not be written; free some space, "
                "then run the same command with --resume"
            ) from error
        raise UserError(f"{path} could not be written: {text}") from error


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


def write_json(path: Path, value) -> None:
    """`write_text` of `value` as indented JSON."""
    write_text(path, json.dumps(value, indent=2, ensure_ascii=False) + "\n")


def write_directory(path: Path, fill: Callable[[Path], None]) -> None:
    """Make directory `path` from what `fill(temporary directory)` writes, all of it or nothing."""
    temporary = path.with_name(TEMPORARY + path.name)
    with write_errors_explained(path):
        try:
            shutil.rmtree(temporary, ignore_errors=True)
            temporary.mkdir(parents=True)
            fill(temporary)
            for file in temporary.rglob("*"):
                _sync(file)
            _sync(temporary)
            if path.exists():
                shutil.rmtree(path)
            os.rename(temporary, path)
            _sync(path.parent)
        except BaseException:
            shutil.rmtree(temporary, ignore_errors=True)
            raise


def _sync(path: Path) -> None:
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
