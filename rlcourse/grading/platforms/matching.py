"""Which row of a platform's table is whose, and who is meant by an ID, a login or an address.

A grade or a notebook in the wrong row is worse than a missing one. So where two students fit one
row, or one student two rows, none of them gets any, and somebody is told.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from rlcourse.errors import UserError
from rlcourse.grading.books.people import Student, students_by_name
from rlcourse.grading.names import alike, one_line, shown, why_no_id
from rlcourse.grading.table import PARTICIPANTS, WORKSHEET_IDS, Table, participant_in

REMOVE = "nbgrader db student remove ID"
UNNAMED = (
    "the platform's file has no ID, login or e-mail address that could be this person's name here; "
    "have the platform show one, and download the file again"
)


@dataclass(frozen=True)
class Whose:
    """A student; or, where it is not clear who is meant, the reason."""

    student: str = ""
    reason: str = ""


def whose(ids: Sequence[str], known: Mapping[str, set[str]]) -> Whose:
    """The student whom a platform lists under `ids`: one of those `known` (``students_by_name``),
    or else somebody new, whose name here is the first of the ids that can be one."""
    ours = set().union(*(known.get(alike(i), set()) for i in ids if i))
    if len(ours) > 1:
        both = " and ".join(map(shown, sorted(ours)))
        return Whose(reason=f"two students fit, {both}: remove one of them with `{REMOVE}`")
    new = (i for i in ids if i and why_no_id(i) is None)
    student = ours.pop() if ours else next(new, "")
    return Whose(student, "" if student else UNNAMED)


def participants(worksheet: Table, students: Iterable[Student]) -> dict[str, Whose]:
    """{number of a participant in one of Moodle's assignments: who that is}, by its worksheet.

    Moodle numbers people anew in each assignment, so a number says nothing in the next one.
    """
    known = students_by_name(students)
    found = {
        participant_in(worksheet, row): whose(stable_ids(worksheet, row), known)
        for row in worksheet.rows
    }
    times = Counter(alike(one.student) for one in found.values() if one.student)
    for number, one in found.items():
        if times[alike(one.student)] > 1:
            reason = f"two rows of the worksheet fit one student, {shown(one.student)}"
            found[number] = Whose(reason=reason)
    return found


def id_columns(worksheet: Table) -> list[int]:
    """The columns of Moodle's worksheet whose ids are the same in every assignment.

    Raises:
        UserError: none does.
    """
    found = [i for i in map(worksheet.column, WORKSHEET_IDS) if i is not None]
    if not found:
        raise UserError(
            "Moodle's table must have one of the columns "
            f"{', '.join(WORKSHEET_IDS[:-1])} and {WORKSHEET_IDS[-1]}, because the numbers in "
            f"{PARTICIPANTS} differ from one assignment to the next: ask your Moodle's "
            "administrator to show teachers one of them (showuseridentity), and download it again"
        )
    return found


def stable_ids(worksheet: Table, row: list[str]) -> list[str]:
    """The person's ids that are the same in every assignment; Moodle's number is not."""
    return [text for column in WORKSHEET_IDS if (text := worksheet.field(row, column))]


def rows_of(
    table: Table, columns: Sequence[int], students: Mapping[str, Student]
) -> dict[str, list[str]]:
    """{our student: their row}, by any of the `columns`; a note says who gets none, and why."""
    ours = students_by_name(students.values())
    claims = []
    for row in table.rows:
        names = {alike(row[i].strip()) for i in columns} - {""}
        claims += [(student, row) for student in set().union(*(ours[n] for n in names & {*ours}))]
    rows, claimed = Counter(s for s, _ in claims), Counter(id(row) for _, row in claims)
    clear = {s: row for s, row in claims if rows[s] == 1 == claimed[id(row)]}
    for note in _unclear(table, [(s, row) for s, row in claims if s not in clear]):
        table.say(note)
    return clear


def _unclear(table: Table, claims: list[tuple[str, list[str]]]) -> Iterator[str]:
    """A sentence for each row that two students match, and each student who matches two rows."""
    number = {id(row): n for n, row in enumerate(table.rows, start=2)}
    students_of: dict[int, list[str]] = defaultdict(list)
    rows: dict[str, list[str]] = defaultdict(list)
    for student, row in claims:
        students_of[id(row)].append(student)
        rows[student].append(f"{number[id(row)]} ({one_line(row[0].strip(), 100)})")
    for row, students in students_of.items():
        if len(students) > 1:
            yield (
                f"left out: row {number[row]} of the table matches two students, "
                f"{' and '.join(map(shown, sorted(students)))}; if they are one person, remove one "
                f"of them with `{REMOVE}`"
            )
    for student, found in sorted(rows.items()):
        if len(found) > 1:
            yield (
                f"left out: {shown(student)} matches two rows of the table, "
                f"{' and '.join(found)}; correct the one that is wrong, or enter their points "
                "there by hand"
            )
