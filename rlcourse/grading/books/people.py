"""Who the gradebook knows: each member of the class by id, name, and ids on the platform.

nbgrader has a place for one of those ids. ``roster.json``, beside the gradebook, has all that
`rlcourse roster` read.
"""

import json
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from nbgrader.api import Gradebook
from nbgrader.coursedir import CourseDirectory

from rlcourse.errors import UserError
from rlcourse.files import write_json
from rlcourse.grading.books.opening import is_absent, open_gradebook
from rlcourse.grading.names import alike

FILE = "roster.json"


@dataclass(frozen=True)
class Student:
    """A member of the class. ``id`` is the name of their directory under ``submitted/``."""

    id: str
    last_name: str = ""
    first_name: str = ""
    email: str = ""
    platform_id: str = ""  # on Canvas or Moodle, if `rlcourse roster` has entered it
    other_ids: tuple[str, ...] = ()  # what else the platform's table calls them

    @property
    def names(self) -> set[str]:
        """All that they are known by, here or on a platform."""
        return {self.id, self.platform_id, self.email, *self.other_ids} - {""}

    @property
    def full_name(self) -> str:
        """First name, then last; "" if neither is known."""
        return " ".join(filter(None, [self.first_name, self.last_name]))


def students_by_name(students: Iterable[Student]) -> dict[str, set[str]]:
    """{each name that a student is known by, here or on the platform: whose it is}."""
    found: dict[str, set[str]] = defaultdict(set)
    for student in students:
        for name in student.names:
            found[alike(name)].add(student.id)
    return found


def students_in(gradebook: Gradebook, course: Path) -> list[Student]:
    """Everybody in the gradebook of the course in that directory, in the order of their ids.

    Raises:
        UserError: ``roster.json`` cannot be read.
    """
    others = other_ids(course)
    return [
        Student(
            *(s.id, s.last_name or "", s.first_name or "", s.email or "", s.lms_user_id or ""),
            tuple(others.get(s.id, ())),
        )
        for s in sorted(gradebook.students, key=lambda s: s.id)
    ]


def students_of(directory: CourseDirectory) -> list[Student]:
    """Everybody whom the course's gradebook knows; nobody where there is none yet."""
    if is_absent(directory):
        return []
    with open_gradebook(directory) as gradebook:
        return students_in(gradebook, Path(directory.root))


def other_ids(course: Path) -> dict[str, list[str]]:
    """{student: all that the platform's table calls them}, as `rlcourse roster` has kept it.

    Raises:
        UserError: the file cannot be read.
    """
    path = course / FILE
    try:
        found = json.loads(path.read_text("utf-8"))["students"]
        return {who: [str(i) for i in ids] for who, ids in found.items()}
    except FileNotFoundError:
        return {}
    except (OSError, ValueError, AttributeError, LookupError, TypeError, RecursionError) as error:
        raise UserError(
            f"{path} cannot be read ({type(error).__name__}): delete it, and run `rlcourse roster` "
            "with the platform's table again"
        ) from None


def keep_other_ids(course: Path, ids: dict[str, list[str]]) -> None:
    """Add those to what is kept for the course in that directory."""
    kept = other_ids(course)
    more = {who: [*dict.fromkeys(kept.get(who, []) + new)] for who, new in ids.items()}
    write_json(course / FILE, {"students": kept | more})


def names_of(directory: CourseDirectory) -> dict[str, str]:
    """{student: first and last name}, of everybody whose name the gradebook knows."""
    return {s.id: s.full_name for s in students_of(directory) if s.full_name}
