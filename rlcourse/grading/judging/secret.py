"""The secret of a course, from which its hidden cases follow."""

import os
import secrets
from pathlib import Path

from rlcourse.errors import UserError
from rlcourse.files import replace_bytes, sync

SECRET_BYTES, FEWEST_BYTES = 32, 16


def course_secret(course: Path) -> bytes:
    """The course's own secret, made at first use; readable by the instructor only."""
    path = course / ".grading-secret"
    if not path.exists():
        part = path.with_name(f"{path.name}.{os.getpid()}")
        replace_bytes(part, secrets.token_bytes(SECRET_BYTES), 0o600)
        try:
            os.link(part, path)  # of two graders at once, one wins
        except FileExistsError:
            pass
        finally:
            part.unlink()
        sync(path.parent)
    secret = path.read_bytes()
    if len(secret) < FEWEST_BYTES:
        raise UserError(
            f"{path} is damaged: it holds {len(secret)} bytes of {SECRET_BYTES}, and hidden cases "
            "could be guessed. Put the one of your last backup in its place, or remove it and "
            "grade every lesson again with `rlcourse grade LESSON --force`."
        )
    return secret
