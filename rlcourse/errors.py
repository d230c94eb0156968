"""The one kind of failure that a user sees without a traceback."""


class UserError(Exception):
    """Something the user can fix. The message is one sentence that says what to do.

    The command line prints it on stderr and exits with ``exit_code``.
    """

    exit_code = 1

    def _render_traceback_(self) -> list[str]:
        """What a notebook shows: IPython calls this, and would print forty lines without it."""
        return [f"rlcourse: {self}"]


def first_line(error: BaseException) -> str:
    """The first line of an error whose message may fill a page."""
    return (str(error).strip() or type(error).__name__).splitlines()[0].rstrip(".:")
