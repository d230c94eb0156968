"""What a learning platform is: the files that it packs, its table of people, its columns.

A new platform is a class like those of ``canvas`` and ``moodle``, and its place in
the list of ``known``. It says what is where; who a person is here, what is collected and which
points are written, is decided in one place for all of them.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from datetime import datetime, tzinfo
from pathlib import Path
from typing import ClassVar

from rlcourse.errors import UserError
from rlcourse.grading.platforms.archives import Archive
from rlcourse.grading.table import Table


@dataclass(frozen=True)
class File:
    """A file in an archive, and whose it is as far as the platform says."""

    archive: Archive = field(repr=False, compare=False)
    name: str  # within the archive
    file: str  # what the student called it
    owner: str = ""  # the platform's word for who handed it in; "" if it has none
    ids: tuple[str, ...] = ()  # of that person, and the same in all assignments
    problem: str = ""  # why it is not collected
    late: bool | None = None  # None where the platform does not say
    time: datetime | None = None  # when it was handed in, in UTC
    doubt: str = ""  # why that is not known


@dataclass(frozen=True)
class Worksheet:
    """A table that goes with an archive, and the time zone of the times in it."""

    table: Table
    zone: tzinfo | None = None  # None: this machine's


@dataclass(frozen=True)
class Person:
    """Whose row of a table it is: all ids there, the one to be known by first."""

    ids: tuple[str, ...]
    last_name: str
    first_name: str
    email: str = ""


Page = tuple[Path, str, list[str]]  # of feedback, whose it is, and their row in a table


class Platform:
    """A platform without archives and tables; the real ones say which of these they have."""

    name: ClassVar[str]
    id_columns: ClassVar[tuple[str, ...]] = ()  # ids that are the same in every assignment
    number_column: ClassVar[str] = ""  # a number that holds for one assignment alone
    comments: ClassVar[str] = ""  # the column for a sentence on a grade, if there is one

    # What is handed in

    def files(self, archive: Archive, worksheet: Worksheet | None) -> Iterable[File] | None:
        """The files of an archive; None if another platform has made it."""
        return None

    # A table of the class

    def has_made(self, table: Table) -> bool:
        return False

    def ids(self, table: Table, row: list[str]) -> list[str]:
        """The ids in a row that are the same in every assignment."""
        return [text for name in self.id_columns if (text := table.field(row, name))]

    def called(self, table: Table, row: list[str]) -> str:
        """The name of the person in a row; "" if the row is nobody's."""
        raise NotImplementedError

    def person(self, table: Table, row: list[str]) -> Person:
        """That person."""
        raise NotImplementedError

    # Grades

    def column(self, table: Table, lesson: str, title: str, wanted: str | None) -> int:
        """Where a lesson's points go; `wanted` is what the instructor says. ``UserError`` if that
        is not clear."""
        raise NotImplementedError

    def is_fixed(self, table: Table, row: list[str], at: int) -> bool:
        """Whether a grade stays as it is there."""
        return False

    def write_feedback(self, out: Path, table: Table, pages: Iterable[Page]) -> None:
        """An archive of feedback pages that the platform takes back."""
        raise UserError(f"{self.name} takes no archive of feedback pages: leave out --feedback")


def in_a_table(platform: Platform, table: Table) -> Iterator[tuple[str, list[str]]]:
    """(name, row) of everybody in a table."""
    for row in table.rows:
        if name := platform.called(table, row):
            yield name, row
