"""Which column of Canvas's gradebook is a lesson's: the assignment with its number or its title.

Canvas takes every column that it does not know for a new assignment of the whole class, and a grade
in the wrong column is everybody's. So where no assignment fits, or several do, nothing is guessed:
the instructor says which one it is, or that there should be a new one.
"""

import re
from difflib import SequenceMatcher

from rlcourse.errors import UserError
from rlcourse.grading.table import Table

CANVAS = ("Student", "ID", "SIS User ID", "SIS Login ID", "Section")
POINTS_POSSIBLE = "points possible"  # what Canvas's second row says below "Student"
READ_ONLY = "(read only)"  # and below a column that Canvas computes
NEW = "new"  # what an instructor writes for a column that is to be added
_PEOPLE = {*(name.casefold() for name in CANVAS), "integration id", "root account", "notes"}
_COMPUTED = re.compile(r"(current|final|override) (points|score|grade|status)\s*$", re.IGNORECASE)
# Canvas writes the assignment's number behind its name: "Policy gradient (98765)"
_BEHIND = re.compile(r"\s*\([0-9]+\)\s*$")
_ARTICLES = {"a", "an", "the"}
_WORK = {"lesson", "notebook", "assignment", "homework", "exercise", "exercises"}


def column_of(table: Table, lesson: str, title: str = "", wanted: str | None = None) -> int:
    """The index of a lesson's column: the one called `wanted`, or the only one that fits; with
    ``NEW`` one is added.

    Raises:
        UserError: there is no such assignment, or it is unclear which one it is.
    """
    if wanted == NEW:
        return _added(table, lesson)
    free = [i for i in range(len(table.header)) if _is_free(table, i)]
    if wanted is not None:
        at = table.column(wanted)
        if at not in free:
            why = "has no column" if at is None else "has no assignment in the column"
            raise UserError(f"the table {why} {wanted!r}; {_choice(table, free, lesson, title)}")
        return at
    fitting = [i for i in free if fits(table.header[i], lesson, title)]
    if len(fitting) == 1:
        return fitting[0]
    if fitting:
        which = " or ".join(repr(table.header[i]) for i in fitting)
        raise UserError(
            f"{lesson} could be {which}: say which with {_option(table, fitting, lesson, title)}"
        )
    raise UserError(f"no column is clearly that of {lesson}; {_choice(table, free, lesson, title)}")


def fits(header: str, lesson: str, title: str = "") -> bool:
    """Whether a column's name says the lesson's number, its topic or its title, and nothing else.

    Small words, and what a course calls its work, do not count: "Lesson 02: The policy gradient".
    """
    number, _, topic = lesson.partition("_")
    own = str(int(number)) if number.isdecimal() else number
    said = _words(_BEHIND.sub("", header))
    plain = "".join(_plain(said))
    if plain == own and (len(said) == 1 or "lesson" in said):  # not "Homework 2"
        return True
    names = {"".join(_plain(_words(name))) for name in (topic, title)} - {""}
    return any(plain in (name, own + name, name + own) for name in names)


def _words(text: str) -> list[str]:
    """Words and numbers without capitals, articles and leading zeros."""
    found = re.findall(r"\d+|[^\W\d_]+", text.casefold())
    return [str(int(w)) if w.isdecimal() else w for w in found if w not in _ARTICLES]


def _plain(words: list[str]) -> list[str]:
    return [word for word in words if word not in _WORK]


def _is_free(table: Table, at: int) -> bool:
    """Whether a column may be an assignment's: neither a person's, nor computed by Canvas."""
    header = table.header[at].strip()
    if header.casefold() in _PEOPLE or (_COMPUTED.search(header) and not _BEHIND.search(header)):
        return False
    return not any(
        row[at].strip().casefold() == READ_ONLY
        for row in table.rows
        if table.field(row, CANVAS[0]).casefold() == POINTS_POSSIBLE
    )


def _choice(table: Table, free: list[int], lesson: str, title: str) -> str:
    """What to do where none fits: the assignments, and the option that names one."""
    numbered = [i for i in free if _BEHIND.search(table.header[i])] or free
    new = f"--column {_number(lesson)}={NEW}"
    if not numbered:
        return f"it has no assignments, and {new} adds one"
    names = ", ".join(repr(table.header[i].strip()) for i in numbered)
    option = _option(table, numbered, lesson, title)
    return f"the assignments are {names}: say which with {option}, or add one with {new}"


def _option(table: Table, among: list[int], lesson: str, title: str) -> str:
    """An option to copy, with the most similar of several columns; a shell takes it as it is."""
    wanted = (title or lesson.partition("_")[2]).casefold()

    def likeness(name: str) -> float:
        return SequenceMatcher(None, _BEHIND.sub("", name).casefold(), wanted).ratio()

    name = max((table.header[i].strip() for i in among), key=likeness)
    quoted = "'" + name.replace("'", "'\\''") + "'" if re.search(r'["$`\\!]', name) else f'"{name}"'
    return f"--column {_number(lesson)}={quoted}"


def _number(lesson: str) -> str:
    return lesson.partition("_")[0]


def _added(table: Table, lesson: str) -> int:
    table.header.append(lesson)
    for row in table.rows:
        row.append("")
    table.say(f"{lesson}: a column was added, and Canvas will make it a new assignment")
    return len(table.header) - 1
