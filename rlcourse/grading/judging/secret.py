"""The secret of a course, from which its hidden cases follow."""

import os
import secrets
from pathlib import Path

from rlcourse.errors import UserError
from rlcourse.files import replace_bytes, sync, write_errors_explained

SECRET_BYTES, FEWEST_BYTES, FEWEST_DIFFERENT = 32, 16, 8


def course_secret(course: Path) -> bytes:
    """The course's own secret, made at first use; readable by the instructor only.

    Raises:
        UserError: it cannot be read or written, or could be guessed.
    """
    path = course / ".grading-secret"
    if not os.path.lexists(path):
        with write_errors_explained(path):
            _make(path)
    try:
        secret = path.read_bytes()
        some = f"{len(secret)} bytes of {SECRET_BYTES}, {len(set(secret))} of them different"
        why = f"it holds {some}, and hidden cases could be guessed"
    except OSError as error:
        secret, why = b"", f"it cannot be read ({error.strerror})"
    # A file system that lost power leaves zeros.
    if len(secret) < FEWEST_BYTES or len(set(secret)) < FEWEST_DIFFERENT:
        raise UserError(
            f"{path} is damaged: {why}. Put the copy from your last backup in its place, or remove "
            "it and grade every lesson again with `rlcourse grade LESSON --force`."
        )
    return secret


def _make(path: Path) -> None:
    part = path.with_name(f"{path.name}.{os.getpid()}")
    replace_bytes(part, secrets.token_bytes(SECRET_BYTES), 0o600)
    try:
        os.link(part, path)  # of two graders at once, one wins
    except FileExistsError:
        pass
    finally:
        part.unlink()
    sync(path.parent)
