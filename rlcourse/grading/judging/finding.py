"""What kind of answer one was, in a word: those that earn the same nothing are told apart.

Who wrote nothing, whose cell does not parse, whose function raises, and whose is wrong in a way
that has a name or has none. Reports of a whole class count these words.
"""

from rlcourse.checks.asking.calling import Failure
from rlcourse.checks.telling.result import Result
from rlcourse.grading.running.steps import ENDINGS, IMPORTED

RIGHT = "right"
NAMED = "named"  # a declared mistake
UNNAMED = "unnamed"  # other values than the right ones
RAISES = "raises"  # in most of the cases that fail
SYNTAX = "syntax error"
BLANK = "blank"  # the stub, or no function at all
UNREAD = "unread"  # the submission could not be graded
# An answer that was ended has the status that its submission gets by it
STATES = (RIGHT, NAMED, UNNAMED, RAISES, SYNTAX, BLANK, IMPORTED, UNREAD, *ENDINGS)
PARSING = ("SyntaxError", "IndentationError", "TabError")


def state_of(telling: Result, right: bool, named: bool, raises: bool, ended: str) -> str:
    """The state of an answer that was judged.

    Args:
        telling: the verdict that its author is told.
        raises: whether most of the cases that fail end in an exception where a value is expected.
        ended: the status with which it was ended, such as ``timed out``; "" if it was not.
    """
    if telling.borrowed:
        return IMPORTED
    if right:
        return RIGHT
    if telling.unwritten:
        return BLANK
    if named:
        return NAMED
    return ended or (RAISES if raises else UNNAMED)


def state_unjudged(error: Failure | None, ended: str) -> str:
    """The state where there was no function to be judged; `error` is that of its cell."""
    if ended or not error:
        return ended or BLANK
    return SYNTAX if error.type in PARSING else RAISES
