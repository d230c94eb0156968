"""Submissions that attack by their names and by the notes next to them, and ids meant for exports.

Of directories with strange names each holds a perfect notebook, which is to earn nothing: their
rows say "refused". The student who brings one along hands in a blank notebook.
"""

import os

import classroom as room
from attacks import ATTACKS, TOTAL, Attack, Field
from attacks_by_file import bytes_of, handed_in

STRANGE = {
    "no UTF-8": b"\xff\xfe", "half a surrogate": b"\xed\xa0\x80", "a newline and a forged row":
    b"x\nada   15.00 / 15  graded\n", "a command to the terminal": b"\x1b[2J\x1b]0;owned\x07",
    "a script": b"<img src=x onerror=alert(1)>", "writing from right to left": "\u202e".encode(),
    "two dots": b"a..b", "an option": b"--force", "all that a name can hold": b"x" * 200,
    "a filler for a letter": "\u3164".encode(),
}  # fmt: skip
FORMULAS = {
    "a formula": b"=cmd|' \\C calc'!A0", "minus": b"-1+1", "a wide equals sign": "＝1+1".encode(),
    "a tab and a formula": b"\t=1+1",
}  # fmt: skip


def brought(name: str, kind: str, directory) -> None:
    """An attack by another directory beside one's own; ``directory(student)`` is its name."""

    def write(field: Field, student: str) -> None:
        for owner in (student, _neighbor(student)):
            room.submit(field.course, owner, field.blank)
        other = os.path.join(bytes(field.course), b"submitted", directory(student))
        os.makedirs(os.path.join(other, room.LESSON.encode()))
        path = os.path.join(other, room.LESSON.encode(), f"{room.LESSON}.ipynb".encode())
        with open(path, "wb") as file:
            file.write(bytes_of(field.perfect))

    ATTACKS.append(Attack(f"a name with {name}", kind, write, 0.0, "graded"))


def _neighbor(student: str) -> str:
    return student.replace("attack", "honest")


for _label, _name in STRANGE.items():
    brought(_label, "names", lambda student, name=_name: name + student.encode())
for _label, _name in FORMULAS.items():
    brought(_label, "exports", lambda student, name=_name: name + student.encode())
brought("the neighbor's in capitals", "names", lambda student: _neighbor(student).upper().encode())
brought("one's own in capitals", "exports", lambda student: student.upper().encode())


# Names of files


def file_named(label: str, name: bytes, status: str, deserved: float, target: bytes = b"") -> None:
    """The notebook under another name; or a link of that name."""

    @handed_in(f"a notebook named by {label}", "names", status, deserved)
    def _named(field, path):
        path.unlink()
        other = os.path.join(bytes(path.parent), name)
        if target:
            os.symlink(target, other)
        else:
            with open(other, "wb") as file:
                file.write(bytes_of(field.perfect))


file_named("no UTF-8, a link", b"\xff.ipynb", "refused", 0.0, b"/etc/passwd")
file_named("no UTF-8", b"\xff.ipynb", "graded", TOTAL)
file_named("a newline and a forged row, a link", b"x\nada  15.00 / 15  graded.ipynb".replace(
    b"/", b"of"), "refused", 0.0, b"nowhere")  # fmt: skip
file_named("a command to the terminal, a link", b"\x1b[2J.ipynb", "refused", 0.0, b"/dev/zero")
file_named("a script, a link", b"<script>alert(1).ipynb", "refused", 0.0, b"\xff\xfe")


FILES = [b"\xff.ipynb", b"\x1b[31m.ipynb", b"a\nada   9.00 of 9  graded.ipynb", b"<script>.ipynb"]


@handed_in("many notebooks with names that act", "names", "missing")
def _many(field, path):
    path.unlink()
    for name in FILES:
        with open(os.path.join(bytes(path.parent), name), "wb") as file:
            file.write(bytes_of(field.perfect))


# Notes

TIMES = [
    b"2026-01-02 03:04:05 UTC", b"0001-01-01 00:00:00 UTC", b"1e9", b"9" * 5000, b"[[[[",
    b"\xff\xfe", b"2026-01-02 03:04:05 ../../etc/passwd",
]  # fmt: skip
for _number, _time in enumerate(TIMES):

    @handed_in(f"a time of submission, no. {_number}", "notes",
               "unreadable time" if _number else "graded", TOTAL)  # fmt: skip
    def _note(field, path, note=_time):
        (path.parent / "timestamp.txt").write_bytes(note)
        return field.perfect


@handed_in("a time of submission that is a link", "notes", "unreadable time", TOTAL)
def _linked_note(field, path):
    (path.parent / "timestamp.txt").symlink_to("/etc/hostname")
    (path.parent / "submission_secret.txt").symlink_to(field.secret)
    return field.perfect


@handed_in("a secret that is a page", "notes", "graded", TOTAL)
def _secret(field, path):
    (path.parent / "submission_secret.txt").write_text("<script>alert(1)</script>")
    return field.perfect
