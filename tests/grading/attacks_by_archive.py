"""Submissions by way of an archive: what is in it, and under whose number.

Each is a member, or several, of an archive of Canvas's, in which somebody else has handed in, too.
What is collected as the attacker's is handed in as theirs; that it is nobody else's is asserted.
"""

import io
import tempfile
import warnings
import zipfile
from pathlib import Path

import classroom as room
from attacks import ATTACKS, TOTAL, Attack, Field
from attacks_by_file import bytes_of

from rlcourse.grading.platforms.collecting import notebooks

NUMBER, OTHER = "6666", "1001"  # the attacker's, and somebody else's


def archived(name: str, members, deserved: float = 0.0, status: str = "graded") -> None:
    """``members(perfect notebook)`` are (name, content) of the attacker's files. Where nothing is
    collected as the attacker's, a blank notebook is handed in."""

    def write(field: Field, student: str) -> None:
        own = members(bytes_of(field.perfect))
        honest = [(f"ada_{OTHER}_5556_{room.LESSON}.ipynb", bytes_of(field.blank))]
        honest += [(f"bob_{n}_5557_{room.LESSON}.ipynb", b"{}") for n in range(1100, 1110)]
        with tempfile.TemporaryDirectory() as made, warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of zipfile, about two members of one name
            path = Path(made, "submissions.zip")
            path.write_bytes(packed([*honest, *own]))
            found = notebooks([path], room.LESSON)
            work = {row.student: row.data for row in found if not row.reason}
            assert work[OTHER] == bytes_of(field.blank)
            assert {*work} <= {OTHER, NUMBER, *map(str, range(1100, 1110))}, {*work}
            room.submit(field.course, student, work.get(NUMBER, field.blank))

    ATTACKS.append(Attack(f"in an archive: {name}", "archives", write, deserved, status))


def packed(members: list[tuple[str | zipfile.ZipInfo, bytes]]) -> bytes:
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in members:
            archive.writestr(name, content)
            for attribute, value in getattr(name, "lies", {}).items():
                setattr(name, attribute, value)
    return made.getvalue()


class Info(zipfile.ZipInfo):
    """A member with attributes of its own, and others that the archive's directory says of it."""

    def __init__(self, name: str, lies: dict | None = None, **attributes):
        super().__init__(name)
        self.lies = lies or {}
        for attribute, value in attributes.items():
            setattr(self, attribute, value)


MINE, THEIRS = f"eve_{NUMBER}_7777_", f"{OTHER}_5556_{room.LESSON}.ipynb"
LESSON = f"{room.LESSON}.ipynb"
archived("an honest one", lambda good: [(MINE + LESSON, good)], TOTAL)
archived("another's number in one's own name", lambda good: [(MINE + THEIRS, good)], TOTAL)
archived("another's number, and nothing in front", lambda good: [(THEIRS, good)])
archived("another's number in a directory", lambda good: [
    (f"{MINE}x/ada_{OTHER}_5559_{LESSON}", good)])  # fmt: skip
archived("another's number in Moodle's form", lambda good: [
    (f"{MINE}ada_{OTHER}_assignsubmission_file_{LESSON}", good)], TOTAL)  # fmt: skip
archived("an archive with another's number", lambda good: [
    (MINE + "all.zip", packed([(f"ada_{OTHER}_5558_{LESSON}", good)]))])  # fmt: skip
archived("three hundred mebibytes of zeros", lambda good: [(MINE + LESSON, bytes(300 * 2**20))])
archived("a bomb in an archive", lambda good: [
    (MINE + "all.zip", packed([("x.ipynb", bytes(300 * 2**20))]))])  # fmt: skip
archived(
    "two notebooks", lambda good: [(MINE + LESSON, good), (f"eve_{NUMBER}_7778_{LESSON}", b"")]
)
archived("two files of one name", lambda good: [(MINE + LESSON, good), (MINE + LESSON, b"{}")])
archived("a newer version", lambda good: [(MINE + LESSON, b"{}"), (
    f"eve_{NUMBER}_7778_{room.LESSON}-1.ipynb", good)], TOTAL)  # fmt: skip
archived("a way out", lambda good: [("../../../../tmp/" + MINE + LESSON, good)])
archived("a whole path", lambda good: [("/tmp/" + MINE + LESSON, good)])
archived("a name with commands to the terminal", lambda good: [
    (MINE + "\x1b[2J\n.ipynb", good)], TOTAL)  # fmt: skip
archived("another lesson", lambda good: [(MINE + "03_baselines.ipynb", good)])
archived("no JSON", lambda good: [(MINE + LESSON, good[:-9])], 0.0, "unreadable file")
archived(
    "a bomb of bzip2's",
    lambda good: [(Info(MINE + LESSON, compress_type=zipfile.ZIP_BZIP2), bytes(100 * 2**20))],
)
archived(
    "a dictionary of four gibibytes",
    lambda good: [
        (
            Info(MINE + LESSON, {"compress_type": zipfile.ZIP_LZMA}),
            b"\x09\x04\x05\x00\x5d\xff\xff\xff\xff" + bytes(99),
        )
    ],
)
archived(
    "two thousand notebooks",
    lambda good: [
        (f"eve_{NUMBER}_{7000 + number}_{LESSON}", good if number else b"")
        for number in range(2000)
    ],
)
archived(
    "a link",
    lambda good: [(Info(MINE + LESSON, external_attr=0o120777 << 16), b"/etc/passwd")],
    0.0,
    "unreadable file",
)
archived("a password", lambda good: [(Info(MINE + LESSON, {"flag_bits": 1}), good)])
archived(
    "a size that is not true",
    lambda good: [(Info(MINE + LESSON, {"file_size": 2**40}), good)],
    TOTAL,
)
