"""Students' names at the border: which are accepted, which are too similar, how others are shown.

A student's id is the name of a directory, a key of the gradebook, a part of paths and addresses, a
cell of a spreadsheet and a word on a terminal. So one rule holds for all of these: letters of any
language, digits and ``_ . @ + - '``, single spaces between them, and a letter or digit first.
``ada+cs@uni.edu`` and ``o'brien`` are ids; nothing that a spreadsheet would compute is. Any other
name is reported, in a form that is safe to print, and left alone.
"""

import re
import unicodedata
from collections import defaultdict
from collections.abc import Iterable

LONGEST_ID = 100  # characters
LONGEST_LINE = 500
LONGEST_NAME = 40  # of a person, in a table
RULE = "a name has only letters, digits and _ . @ + - ', a letter or digit first, single spaces"
_ALSO = frozenset("_.@+-' ")
_FORMULA = ("=", "+", "-", "@", "\t", "\r")
_NUMBER = re.compile(r"[-+]?\d+([.,]\d+)?%?")
# Characters that move a terminal's cursor, change the direction, are invisible or half a letter
_NOT_TEXT = ("Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp")
# Letters and marks that are not seen either: Unicode calls them default ignorable
_UNSEEN = frozenset(
    map(chr, [0x34F, 0x115F, 0x1160, 0x17B4, 0x17B5, 0x180B, 0x180C, 0x180D, 0x180F, 0x3164, 0xFFA0,
              *range(0xFE00, 0xFE10), *range(0xE0100, 0xE01F0)])
)  # fmt: skip
MOST_MARKS = 4  # on one letter; more would run over the lines above and below
# Letters of other alphabets that look like these of ours, after ``casefold``
_LOOKS_LIKE = str.maketrans(
    "аеіјорсухѕԁһԛԝӏвкмнтαβεζηικμνορτυχϲϳ", "aeijopcyxsdhqwlbkmhtabezhikmvoptyxcj"
)


def why_no_id(name: str) -> str | None:
    """Why `name` is not accepted as a student's id, and what to do; None if it is."""
    if not name or len(name) > LONGEST_ID:
        return f"rename it: a name has 1 to {LONGEST_ID} characters, and this one has {len(name)}"
    marks = 0
    for c in name:
        kind = unicodedata.category(c)[0]
        marks = marks + 1 if kind == "M" else 0
        taken = c in _ALSO or kind in "LM" or c.isdecimal()
        if c in _UNSEEN or marks > MOST_MARKS or not taken:
            return f"rename it without {_described(c)}: {RULE}"
    if not name[0].isalnum() or name[-1] in " ." or "  " in name or ".." in name:
        return f"rename it: {RULE}, no two dots together, no dot or space at the end"
    return None


def _described(c: str) -> str:
    """A character by its number and its name: ``U+2019 RIGHT SINGLE QUOTATION MARK``."""
    return " ".join(filter(None, [f"U+{ord(c):04X}", unicodedata.name(c, "")]))


def alike(name: str) -> str:
    """The same key for all names that a person, a file system or a platform may confuse."""
    folded = unicodedata.normalize("NFKC", name).casefold()
    folded = unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", folded).casefold())
    digits = (str(unicodedata.decimal(c)) if c.isdecimal() else c for c in folded)
    return "".join(digits).translate(_LOOKS_LIKE)


def groups_alike(names: Iterable[str]) -> list[set[str]]:
    """Groups of two or more different names that may be confused."""
    groups: dict[str, set[str]] = defaultdict(set)
    for name in names:
        groups[alike(name)].add(name)
    return [group for group in groups.values() if len(group) > 1]


def twins(found: Iterable[str], known: Iterable[str] = ()) -> dict[str, list[str]]:
    """{name: the others that it may be confused with}, for the names of `found` that are refused.

    Of similar names, the only `known` one is accepted; else the plainest, in lower case and normal
    form, so that no other name can displace it; else none.
    """
    known = set(known)
    giving_way = {}
    for group in groups_alike({*found, *known}):
        standing = group & known
        if len(standing) != 1:
            standing = {name for name in standing or group if name == alike(name)}
        for name in group - standing:
            giving_way[name] = sorted(group - {name})
    return giving_way


def shown(name: str) -> str:
    """A name for people: unchanged if it is an id, else quoted, in ASCII, and shortened."""
    if why_no_id(name) is None:
        return name
    quoted = ascii(name)
    return quoted if len(quoted) <= LONGEST_ID else f"{quoted[: LONGEST_ID - 4]}...'"


def one_line(text: str, longest: int = LONGEST_LINE) -> str:
    """Text for a line of a table: characters that move the cursor or are invisible are escaped."""
    safe = "".join(c if c == " " or _is_text(c) else ascii(c)[1:-1] for c in text[:longest])
    return safe if len(text) <= longest else f"{safe}…"


def _is_text(c: str) -> bool:
    return unicodedata.category(c) not in _NOT_TEXT and c not in _UNSEEN


def cell(text: str) -> str:
    """Text for a table cell: nothing that a spreadsheet would run, no command to a terminal.

    A formula gets a leading apostrophe, by which spreadsheets know that it is text.
    """
    safe = "".join(c if c in "\n\t" or _is_text(c) else ascii(c)[1:-1] for c in text)
    begins = unicodedata.normalize("NFKC", safe).lstrip(" \u00a0")
    if len(begins) > 1 and begins.startswith(_FORMULA) and not _NUMBER.fullmatch(begins.strip()):
        return f"'{safe}"
    return safe
