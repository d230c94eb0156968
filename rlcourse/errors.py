"""The one kind of failure that a user sees without a traceback."""


class UserError(Exception):
    """Something the user can mend. The message is one sentence that says what to do.

    The command line prints it on stderr and exits with ``exit_code``.
    """

    exit_code = 1
