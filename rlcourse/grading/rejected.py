"""Why a submission cannot be graded, as a status and a sentence."""

from rlcourse.grading.names import one_line

MISSING, REFUSED, UNREADABLE = "missing", "refused", "unreadable file"
WRONG = "wrong notebook"


class Rejected(Exception):
    """A submission that cannot be graded; its status and why."""

    def __init__(self, status: str, reason: str):
        super().__init__(reason)
        self.status, self.reason = status, one_line(reason)  # it may quote what a student wrote
