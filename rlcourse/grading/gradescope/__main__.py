"""``prepare SOURCE HOME`` once in Gradescope's image; ``grade HOME AUTOGRADER`` per submission."""

import sys
from pathlib import Path

from rlcourse.errors import UserError


def main(what: str, first: str, second: str) -> None:
    if what == "prepare":
        from rlcourse.grading.gradescope.preparing import prepare

        prepare(Path(first), Path(second))
    else:
        from rlcourse.grading.gradescope.grading import grade

        grade(Path(first), Path(second))


if __name__ == "__main__":
    try:
        main(*sys.argv[1:])
    except UserError as error:
        sys.exit(f"rlcourse: {error}")
