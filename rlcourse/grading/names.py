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


def why_no_id(name: str) -> str | None:
    """Why `name` is not accepted as a student's id, and what to do; None if it is."""
    if not name or len(name) > LONGEST_ID:
        return f"rename it: a name has 1 to {LONGEST_ID} characters, and this one has {len(name)}"
    for c in unicodedata.normalize("NFC", name):
        seen = (c.isalpha() or c.isdecimal()) and "FILLER" not in unicodedata.name(c, "")
        if c not in _ALSO and not seen:
            return f"rename it without U+{ord(c):04X} {unicodedata.name(c, '')}: {RULE}"
    if not name[0].isalnum() or name[-1] in " ." or "  " in name or ".." in name:
        return f"rename it: {RULE}, no two dots together, no dot or space at the end"
    return None


def alike(name: str) -> str:
    """The same key for all names that a person, a file system or a platform may confuse."""
    folded = unicodedata.normalize("NFKC", name).casefold()
    return unicodedata.normalize("NFKC", folded)


def twins(found: Iterable[str], known: Iterable[str] = ()) -> dict[str, list[str]]:
    """{name: the others that it may be confused with}, for the names of `found` that are refused.

    Of similar names, the only `known` one is accepted; else the plainest, in lower case and normal
    form, so that no other name can displace it; else none.
    """
    known, groups = set(known), defaultdict(set)
    for name in {*found, *known}:
        groups[alike(name)].add(name)
    giving_way = {}
    for group in groups.values():
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
    """Text for a line of a table: characters that move the cursor are escaped."""
    safe = _printable(text[:longest])
    return safe if len(text) <= longest else f"{safe}…"


def _printable(text: str, also: str = "") -> str:
    """Text in which what moves a terminal's cursor is escaped, except `also`."""
    kept = (c.isprintable() or c in also or unicodedata.category(c) == "Zs" for c in text)
    return "".join(c if keep else ascii(c)[1:-1] for c, keep in zip(text, kept, strict=True))


def cell(text: str) -> str:
    """Text for a table cell: nothing that a spreadsheet would run, no command to a terminal.

    A formula gets a leading apostrophe, by which spreadsheets know that it is text.
    """
    safe = _printable(text, also="\n\t")
    begins = unicodedata.normalize("NFKC", safe).lstrip(" \u00a0")
    if len(begins) > 1 and begins.startswith(_FORMULA) and not _NUMBER.fullmatch(begins.strip()):
        return f"'{safe}"
    return safe
