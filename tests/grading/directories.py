"""Students' directories in which anything may lie, drawn from a seed.

Names are bytes, notes say what they like, links lead anywhere, and a file may be a pipe. ``draw``
makes one below ``submitted/``; ``read`` makes of it what the grader makes of it, and asserts that
it is a row.
"""

import json
import os
import random
from pathlib import Path

import classroom as room
from nbgrader import utils

from rlcourse.grading.handing_in import student_folder
from rlcourse.grading.handing_in.submission import parse, rebuild
from rlcourse.grading.names import one_line, shown, why_no_id
from rlcourse.grading.rejected import Rejected
from rlcourse.grading.report import Report, Row

NAMES = [
    b"ada", "zo\u0308e".encode(), "Åsa".encode(), b"\xff\xfe", b"a\nb", b"a\tb", b"\x1b[2J\x1b[H",
    b"<img src=x onerror=alert(1)>", b"=cmd|'\\c calc'!A1", b"+1+1", b"@SUM(1)", b"-rf", b"a'b",
    b"ada ", b" ada", b"..ada", b"a..b", b"a\\b", b"%s%n", b"{0}", b"${HOME}", b"`id`", b"a;b",
    "\u202egpj".encode(), "a\u200bb".encode(), "\ufeffada".encode(), "ＡＤＡ".encode(),
    "straße".encode(), "ﬁ".encode(), "\U0001f600".encode(), b"x" * 255, b"~", b"NUL", b"con", b"*",
    b"\xed\xa0\x80", "a\u2028b".encode(), b"1001", b"None", b"a&b", b'"', b"--force", b"a|b",
    "ada\ufe0f".encode(), "\u3164".encode(), "\u0430da".encode(), b"a" + "\u0335".encode() * 9,
]  # fmt: skip
FILES = [
    b"02_policy_gradient.ipynb", b"02_policy_gradient (1).ipynb", b"\xff.ipynb", b"\x1b[31m.ipynb",
    b"a\nada   9.00 of 9  graded.ipynb", b"<script>.ipynb", "\u202e.ipynb".encode(), b".ipynb",
    b"._x.ipynb", b"02_POLICY_GRADIENT.IPYNB", b"x.ipynb", b"y" * 249 + b".ipynb", b"=1.ipynb",
]  # fmt: skip
TIMES = [
    b"2026-01-02 03:04:05 UTC", b"2026-01-02 03:04:05 ..", b"2026-01-02 03:04:05 ../../etc/passwd",
    b"2026-01-02 03:04:05 /etc/localtime", b"9999-12-31 23:59:59 -1400", b"0001-01-01 00:00:00 UTC",
    b"now", b"", b"\xff\xfe", b"\x00", b"1e9", b"2026-13-45 99:99:99 UTC", b"9" * 999, b"9" * 5000,
    b"2026-01-02 03:04:05 " + b"A" * 500, "2026-01-02 03:04:05 \u0661".encode(), b"-1", b"NaN",
    b"2026-01-02 03:04:05 Europe/Berlin", b"10**9", b"2026-01-02T03:04:05Z", b"\xef\xbb\xbf2026",
    b"2026-01-02 03:04:05 tzlocal()", b"2026-01-02 03:04:05 No/where", b"%Y", b"[[[[", b"1\n2\n3",
    b"2026-01-02 03:04:05 +9999", b"2026-01-02 25:00:00", b"2026-01-02 03:04:05 Europe",
]  # fmt: skip
DATA = [
    b"", b"{", b"null", b"[]", b'{"cells": []}', b'{"cells": 7}', b"\xff\xfe\x00", b"[" * 100_000,
    b'{"cells": [{"cell_type": "code", "source": "x = 1"}]}', b"\xef\xbb\xbf{}", b"9" * 10_000,
    b'{"cells": ' + b"[" * 5000 + b"]" * 5000 + b"}", b'{"a": 1e999, "cells": [null]}', b"\x00" * 9,
    b'{"cells": [{"source": ["\\ud800"], "cell_type": "markdown"}]}', b'"' + b"x" * 99_999, b"NaN",
]  # fmt: skip
TARGETS = [b"/etc/passwd", b"/dev/zero", b".", b"..", b"\xff", b"nowhere", b"/", b"x" * 300]


def draw(chance: random.Random, submitted: Path, number: int, good: bytes) -> bytes:
    """Make a directory in `submitted`; returns its name."""
    name = chance.choice(NAMES) if chance.random() < 0.7 else bytes(
        chance.choice([c for c in range(1, 256) if c != 47]) for _ in range(chance.randint(1, 30))
    )  # fmt: skip
    if name.strip(b".") == b"" or name.startswith(b"."):
        name = b"d" + name
    student = os.path.join(bytes(submitted), name[:245] + b"%d" % number)
    _lesson(chance, os.path.join(student, room.LESSON.encode()), good)
    _times(chance, student)
    return os.path.basename(student)


def _lesson(chance: random.Random, lesson: bytes, good: bytes) -> None:
    kind = chance.randrange(12)
    os.makedirs(os.path.dirname(lesson), exist_ok=True)
    if os.path.lexists(lesson):
        return
    if kind == 0:
        _anything(chance, lesson, good)
    else:
        os.mkdir(lesson)
        for name in chance.sample(FILES, chance.choice([0, 1, 1, 1, 2, 3])):
            _anything(chance, os.path.join(lesson, name), good)
        for note in (b"timestamp.txt", b"submission_secret.txt"):
            if chance.random() < 0.7:
                _anything(chance, os.path.join(lesson, note), chance.choice(TIMES))


def _anything(chance: random.Random, path: bytes, content: bytes) -> None:
    """A file, most times; or a link, a pipe, a directory, a hole of terabytes."""
    kind = chance.randrange(14)
    if kind == 0:
        os.symlink(chance.choice(TARGETS), path)
    elif kind == 1:
        os.mkfifo(path)
    elif kind == 2:
        os.mkdir(path)
    else:
        with open(path, "wb") as file:
            file.write(content if kind > 8 else chance.choice(DATA + TIMES))
            if kind == 3:
                file.truncate(2**41)
        os.chmod(path, chance.choice([0o644, 0o644, 0o000, 0o200, 0o777]))


def _times(chance: random.Random, path: bytes) -> None:
    when = chance.choice([0, -(2**31), 2**33, 1, 1_790_000_000])
    os.utime(path, (when, when))


def read(submitted: Path, name: bytes, release) -> str:
    """The status of a directory's row; whatever lies there, the row can be printed and written."""
    found = student_folder.read(submitted, os.fsdecode(name), room.LESSON)
    assert len(found.fingerprint(b"against")) == 64
    rejected = found.rejected
    if not rejected:
        assert why_no_id(found.student) is None
        try:
            json.dumps(rebuild(release, parse(found.data))).encode()
        except Rejected as error:
            rejected = error
    said = [f"{rejected.status} ({rejected.reason})"] if rejected else []
    said += [str(remark) for remark in found.remarks]
    row = Row(found.shown, rejected.status if rejected else "graded", 0.0, 9.0,
              incidents=tuple(map(one_line, said)))  # fmt: skip
    text = Report(room.LESSON, (row,)).described()
    assert len(text.split("\n")) == 3 and text.replace("\n", "").isprintable(), text
    json.dumps(row.as_json()).encode()
    for _, note in found.notes:
        assert note.isprintable() and len(note) <= student_folder.LONGEST_NOTE
    if found.timestamp:
        assert utils.parse_utc(found.timestamp).year >= 2000
    assert shown(found.student).isprintable()
    return row.status
