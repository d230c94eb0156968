"""The one kind of failure that a user sees without a traceback."""


class UserError(Exception):
    """Something the user can mend. The message is one sentence that says what to do.

    The command line prints it on stderr and exits with ``exit_code``.
    """

    exit_code = 1

    def _render_traceback_(self) -> list[str]:
        """What a notebook shows: IPython asks for it, and has forty lines without."""
        return [f"rlcourse: {self}"]
