"""Who is meant by an ID, a login or an address, and which row of a platform's table is whose.

A grade or a notebook in the wrong row is worse than a missing one. So where two students fit one
row, or one student two rows, none of them gets any, and somebody is told.
"""

from collections import defaultdict
from collections.abc import Mapping, Sequence

from rlcourse.grading.books.people import Student, students_by_name
from rlcourse.grading.names import alike, one_line, shown, why_no_id
from rlcourse.grading.platforms.archives import Odd
from rlcourse.grading.platforms.platform import Platform
from rlcourse.grading.table import Table

REMOVE = "if they are one person, remove one of them with `nbgrader db student remove ID`"
UNNAMED = (
    "the platform's file has no ID, login or e-mail address that could be this person's name here; "
    "have the platform show one, and download the file again"
)


def students_with(ids: Sequence[str], known: Mapping[str, set[str]]) -> set[str]:
    """All of those `known` (``students_by_name``) who are called by one of the `ids`."""
    return set().union(*(known.get(alike(i), set()) for i in ids))


def student_with(ids: Sequence[str], known: Mapping[str, set[str]]) -> str:
    """The student whom a platform lists under `ids`: one of those `known`, or else somebody new,
    whose name here is the first of the ids that can be one.

    Raises:
        Odd: it is not clear who is meant.
    """
    ours = students_with(ids, known)
    if len(ours) > 1:
        raise Odd(f"two students fit, {_both(ours)}; {REMOVE}")
    if ours:
        return ours.pop()
    reasons = {i: why_no_id(i) for i in ids}
    for i, reason in reasons.items():
        if reason is None:
            return i
    raise Odd(next(iter(reasons.values()), UNNAMED) or UNNAMED)


def _both(students: set[str]) -> str:
    return " and ".join(map(shown, sorted(students)))


def rows_of(
    platform: Platform, table: Table, students: Mapping[str, Student]
) -> dict[str, list[str]]:
    """{our student: their row}; a note in the table says who gets none, and why."""
    known = students_by_name(students.values())
    rows: dict[str, list[tuple[int, list[str]]]] = defaultdict(list)
    unclear: set[str] = set()
    for number, row in enumerate(table.rows, start=2):
        ours = students_with(platform.ids(table, row), known)
        for student in ours:
            rows[student].append((number, row))
        if len(ours) > 1:
            unclear |= ours
            table.say(
                f"left out: row {number} of the table matches two students, {_both(ours)}; {REMOVE}"
            )
    for student, found in sorted(rows.items()):
        if len(found) > 1:
            unclear.add(student)
            both = " and ".join(f"{n} ({one_line(row[0].strip(), 100)})" for n, row in found)
            table.say(
                f"left out: {shown(student)} matches two rows of the table, {both}; correct the "
                "one that is wrong, or enter their points there by hand"
            )
    return {student: found[0][1] for student, found in rows.items() if student not in unclear}
