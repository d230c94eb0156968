"""Which copy of the course this is: the whole one, or a students' edition, which lacks answers.

``rlcourse student-edition`` writes the values of an edition at the end of this file's copy in it.
"""

from rlcourse.errors import UserError


def refuse_in_edition(what: str) -> None:
    """Raises ``UserError`` in a students' edition: `what`, such as "grade", needs every answer."""
    if EDITION:
        raise UserError(
            "this is a students' edition of the course, without the answers of lessons that are "
            f"not due: {what} with the instructor's installation"
        )


EDITION = False
OPEN: tuple[str, ...] = ()  # the lessons whose right answers an edition has
WITHHELD: tuple[str, ...] = ()  # and those whose right answers it lacks
BLANK: tuple[str, ...] = ()  # the functions without a body, as "rlcourse.algorithms.grpo.grpo_loss"
PACKED: dict[str, tuple[str, str]] = {}  # name: (module, text) of those that the library runs
