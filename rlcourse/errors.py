"""The one kind of failure that a user sees without a traceback."""

from collections.abc import Iterator
from contextlib import contextmanager


class UserError(Exception):
    """Something the user can mend. The message is one sentence that says what to do.

    The command line prints it on stderr and exits with ``exit_code``.
    """

    exit_code = 1

    def _render_traceback_(self) -> list[str]:
        """What a notebook shows: IPython asks for it, and has forty lines without."""
        return [f"rlcourse: {self}"]


def first_line(error: BaseException) -> str:
    """The gist of an error that may run over a page."""
    return (str(error).strip() or type(error).__name__).splitlines()[0].rstrip(".:")


@contextmanager
def needing(extra: str, what: str) -> Iterator[None]:
    """Within it, a package that is not there is asked for: by the extra of rlcourse that has it.

    Raises:
        UserError: `what` needs a package that is not installed.
    """
    try:
        yield
    except ModuleNotFoundError as error:
        missing = (error.name or "").partition(".")[0]
        if missing in ("", "rlcourse"):
            raise
        raise UserError(
            f'{what} needs {missing}, which is not installed: pip install "rlcourse[{extra}]", or '
            f'in a clone pip install -e ".[{extra}]"'
        ) from None
