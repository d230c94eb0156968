"""Who the gradebook knows: each member of the class by id, name, and id on the platform."""

from dataclasses import dataclass

from nbgrader.api import Gradebook
from nbgrader.coursedir import CourseDirectory

from rlcourse.grading.books.due import is_absent


@dataclass(frozen=True)
class Student:
    """A member of the class. ``id`` is the name of their directory under ``submitted/``."""

    id: str
    last_name: str = ""
    first_name: str = ""
    email: str = ""
    platform_id: str = ""  # on Canvas or Moodle, if `rlcourse roster` has entered it

    @property
    def full_name(self) -> str:
        """First name, then last; "" if neither is known."""
        return " ".join(filter(None, [self.first_name, self.last_name]))

    @property
    def name(self) -> str:
        """First name, then last; the id if neither is known."""
        return self.full_name or self.id


def students_in(gradebook: Gradebook) -> list[Student]:
    """Everybody, in the order of their ids."""
    return [
        Student(s.id, s.last_name or "", s.first_name or "", s.email or "", s.lms_user_id or "")
        for s in sorted(gradebook.students, key=lambda s: s.id)
    ]


def students_of(directory: CourseDirectory) -> list[Student]:
    """Everybody whom the course's gradebook knows; nobody where there is none yet."""
    if is_absent(directory):
        return []
    with Gradebook(directory.db_url, directory.course_id) as gradebook:
        return students_in(gradebook)


def names_of(directory: CourseDirectory) -> dict[str, str]:
    """{student: first and last name}, of everybody whose name the gradebook knows."""
    return {s.id: s.full_name for s in students_of(directory) if s.full_name}
