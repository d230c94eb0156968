"""Forged frames, notebooks and answers, by the hundred: nothing but the declared refusals.

The claim: a frame is a value or a ``BrokenMessage``; a notebook file is rebuilt or ``Rejected``;
any answer is judged, and earns from nothing to all points; any directory of a student becomes a row
that can be printed and written.
"""

import json
import math
import os
import struct
from contextlib import suppress
from itertools import product
from pathlib import Path

import classroom as room
import nbformat
import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from test_markdown import HOSTILE

from rlcourse.checks.asking import wire
from rlcourse.checks.asking.calling import Facts, Failure, Opaque, Outcome
from rlcourse.checks.asking.specs import Spec
from rlcourse.grading.handing_in import student_folder
from rlcourse.grading.handing_in.submission import parse, rebuild
from rlcourse.grading.judging.judge import LessonExam
from rlcourse.grading.rejected import Rejected
from rlcourse.grading.running.answers import LOST, AnswersSoFar, ExamAnswer, fields_of
from rlcourse.grading.running.steps import Transcript

PER_EXAMPLE = 20  # damaged frames made of each


def examples(number: int):
    return settings(
        max_examples=number,
        deadline=None,
        database=None,
        print_blob=True,
        suppress_health_check=list(HealthCheck),
    )


# Frames

NUMBERS = st.sampled_from(
    [0, 1, -1, 2, 8, 24, 1 << 31, 1 << 62, 1 << 63, 1 << 64, 1 << 70, 0.5, 1e308, math.nan, True]
)  # fmt: skip
WORDS = st.sampled_from(
    ["", "x", "float64", "bool", "object", "bfloat16", "Outcome", "Failure", "Facts", "Spec",
     "Opaque", "Case", "value", "type", "message", "gradients", "name", "\ud800", "\x00", "os"]
)  # fmt: skip
LEAVES = st.none() | NUMBERS | WORDS | st.integers() | st.floats() | st.text(max_size=5)
TENSORS = st.fixed_dictionaries(
    {"tensor": WORDS, "shape": st.lists(NUMBERS, max_size=5) | LEAVES, "bytes": NUMBERS}
)


def _nodes(inner):
    pairs = st.lists(st.tuples(WORDS | LEAVES, inner).map(list), max_size=4) | inner
    return (
        st.lists(inner, max_size=4)
        | st.fixed_dictionaries({"list": st.lists(inner, max_size=4) | inner})
        | st.fixed_dictionaries({"tuple": st.lists(inner, max_size=4) | inner})
        | st.fixed_dictionaries({"dict": pairs})
        | st.fixed_dictionaries({"record": WORDS, "fields": pairs})
        | st.dictionaries(WORDS, inner, max_size=3)
    )


HEADERS = st.recursive(LEAVES | TENSORS, _nodes, max_leaves=15)


def frame(header, body: bytes) -> bytes:
    header = json.dumps(header).encode()
    return struct.pack("<II", len(header), len(body)) + header + body


def told(parts: list[dict], cases: int) -> ExamAnswer:
    exam = AnswersSoFar(cases)
    for part in parts:
        exam.add(part)
    return exam.answer(LOST)


def read_frame(message: bytes) -> None:
    try:
        value = wire.loads(message)
    except wire.BrokenMessage:
        return
    with suppress(wire.BrokenMessage):
        AnswersSoFar(2).add(fields_of(value))
    with suppress(wire.BrokenMessage):
        told([{"facts": Facts("f")}, fields_of(value)], 2)
    wire.loads(wire.dumps(value))


@pytest.mark.slow
@examples(140)
@given(HEADERS, st.binary(max_size=64), st.randoms(use_true_random=False))
def test_a_frame_is_a_value_or_refused(header, body, rng):
    good = frame(header, body)
    read_frame(good)
    for _ in range(PER_EXAMPLE):
        damaged = bytearray(good)
        for _ in range(rng.randint(1, 6)):
            at = rng.randrange(len(damaged))
            how = rng.randrange(4)
            if how == 0:
                damaged[at] = rng.randrange(256)
            elif how == 1:
                del damaged[at : at + rng.randrange(1, 8)]
                damaged = damaged or bytearray(b"\0")
            elif how == 2:
                damaged[at:at] = rng.choice([b"[", b"{", b'"', b"9", b"-", b"null", b"e9"])
            else:
                damaged[at:at] = damaged[at : at + 16]
        if len(damaged) >= 8 and rng.random() < 0.8:  # lengths that fit, to get further
            body_size = min(len(body), len(damaged) - 8)
            damaged[:8] = struct.pack("<II", len(damaged) - 8 - body_size, body_size)
        read_frame(bytes(damaged))


# Notebooks


@pytest.fixture(scope="module")
def release(template):
    return room.released(template)


IDS = st.sampled_from(
    [*room.NAMES, *(f"check_{name}" for name in room.NAMES), "applause", "", "check_", "x" * 70]
)
CODE = st.sampled_from(
    ["", "x = 1", "def f(:", "%%bash\nls", "!ls", "\n" * 3000, "%" * 500, "(" * 300,
     "-" * 3000 + "1", "\x00", "\ud800", "# coding: utf-16\nx",
     "def score_function(a, b):\n    return 1", "\t\f%x",
     "f'{" * 50, "lambda:" * 500, "1" * 5000, "x." * 5000 + "y", "[" * 1000, "'''", "\\\n" * 1000,
     "def " + "a" * 1000 + "(): pass", "await x", "%%writefile y\nimport z"]
)  # fmt: skip
SOURCES = CODE | st.sampled_from(HOSTILE) | st.text(max_size=30)
METADATA = st.fixed_dictionaries(
    {},
    optional={
        "nbgrader": st.fixed_dictionaries({"grade_id": IDS | LEAVES}) | LEAVES,
        "tags": LEAVES,
    },
)
CELLS = (
    st.fixed_dictionaries(
        {"cell_type": st.sampled_from(["code", "markdown", "raw", "heading", 7, None])},
        optional={
            "source": SOURCES
            | st.lists(SOURCES, max_size=3)
            | LEAVES
            | st.lists(LEAVES, max_size=2),
            "metadata": METADATA | LEAVES,
            "id": IDS | LEAVES,
            "outputs": LEAVES,
            "attachments": LEAVES,
        },
    )
    | LEAVES
)
NOTEBOOKS = st.fixed_dictionaries(
    {"cells": st.lists(CELLS, max_size=8) | LEAVES},
    optional={"nbformat": LEAVES, "metadata": LEAVES, "worksheets": LEAVES},
) | st.recursive(LEAVES, lambda inner: st.lists(inner, max_size=3), max_leaves=5)


def read_notebook(release, data: bytes) -> None:
    try:
        rebuilt = rebuild(release, parse(data))
    except Rejected:
        return
    nbformat.validate(rebuilt)
    json.dumps(rebuilt).encode()


@examples(100)
@given(NOTEBOOKS, st.randoms(use_true_random=False))
def test_a_notebook_is_rebuilt_or_refused(release, template, notebook, rng):
    data = json.dumps(notebook).encode()
    read_notebook(release, data)
    if isinstance(notebook, dict) and isinstance(notebook.get("cells"), list):
        mixed = json.loads(json.dumps(room.solved(template)))
        for cell in json.loads(json.dumps(notebook["cells"])):
            mixed["cells"].insert(rng.randrange(len(mixed["cells"])), cell)
        read_notebook(release, json.dumps(mixed).encode())
    for _ in range(2):
        damaged = bytearray(data)
        for _ in range(rng.randint(1, 5)):
            damaged[rng.randrange(len(damaged))] = rng.randrange(256)
        read_notebook(release, bytes(damaged))


# Answers

SHAPES = st.sampled_from(
    [(), (0,), (1,), (3,), (2, 3), (3, 2), (0, 4), (1000, 0), (2, 3, 1), (64,)]
)
DTYPES = st.sampled_from(list(wire.DTYPES.values()))
FILLS = st.sampled_from([0, 1, -1, 0.5, float("nan"), float("inf"), 1e30])


@st.composite
def tensors(draw):
    return torch.full(draw(SHAPES), draw(FILLS), dtype=torch.float64).to(draw(DTYPES))


VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**63)
    | st.floats()
    | st.sampled_from(["", "x", "nan", "a" * 5000])
    | tensors()
    | st.just(Opaque("x"))
    | st.builds(Spec, WORDS, st.dictionaries(WORDS, LEAVES, max_size=2)),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.lists(inner, max_size=3).map(tuple)
        | st.dictionaries(WORDS, inner, max_size=2)
    ),
    max_leaves=6,
)
FAILURES = st.builds(
    Failure,
    st.sampled_from(["NotImplementedError", "ValueError", "TypeError", ""]),
    st.text(max_size=5),
    st.none() | st.integers(-1, 99),
    st.sampled_from(["", "x = 1", "a" * 300]),
    st.sampled_from(["", *room.NAMES]),
)
NAMES = st.lists(st.sampled_from(["logits", "policy", "mask", "x", "", *room.NAMES]), max_size=3)
OUTCOMES = st.builds(
    Outcome,
    value=VALUES,
    gradients=st.dictionaries(st.sampled_from(["logits", "logprobs", "x"]), st.none() | VALUES),
    changed=NAMES.map(tuple),
    after=st.dictionaries(st.sampled_from(["policy.logits", "x"]), VALUES, max_size=2),
    error=st.none() | FAILURES,
    warnings=NAMES.map(tuple),
    printed=st.text(max_size=5),
    repeatable=st.booleans(),
)
FACTS = st.builds(Facts, st.sampled_from(room.NAMES), *[NAMES.map(tuple)] * 3)


@pytest.fixture(scope="module")
def exam(release):
    return LessonExam(release, b"secret")


@pytest.mark.slow
@examples(60)
@given(
    st.sampled_from([f"check_{name}" for name in room.NAMES]),
    FACTS,
    st.lists(OUTCOMES, min_size=1, max_size=3),
)
def test_any_answer_earns_from_nothing_to_all_points(exam, grade_id, facts, few):
    cases = len(exam.requests[grade_id].questions)
    outcomes = [few[i % len(few)] for i in range(cases)]
    sent = [{"facts": facts}, *({"outcome": o} for o in outcomes)]
    try:
        answer = told([wire.loads(wire.dumps(part)) for part in sent], cases)
    except wire.BrokenMessage:
        return
    for mark in exam.judge(Transcript(exams={grade_id: answer})).values():
        assert 0 <= mark.points <= mark.possible
        assert len(mark.message) < 50_000
        mark.message.encode()


def test_any_directory_of_a_student_is_a_row(template, tmp_path):
    """Every kind of file under every kind of name, with times of every kind beside it."""
    made = {
        "graded": lambda path: path.write_text(json.dumps(room.solved(template))),
        "text": lambda path: path.write_bytes(b"\xff\xfe\x00"),
        "hole": lambda path: (path.touch(), os.truncate(path, 2**41)),
        "pipe": os.mkfifo,
        "folder": lambda path: path.mkdir(),
        "link": lambda path: path.symlink_to("/etc/passwd"),
        "endless": lambda path: path.symlink_to("/dev/zero"),
        "nothing": lambda path: None,
    }
    times = [b"2026-01-02 03:04:05 UTC", b"", b"\x00", b"9" * 5000, b"2026-13-45 99:99:99 UTC",
             b"9999-12-31 23:59:59 -1400", b"2026-01-02 03:04:05 /etc/localtime"]  # fmt: skip
    for (kind, make), name in product(made.items(), (b"ada", b"\xff", b"<b>\x1b[2J")):
        folder = os.path.join(bytes(tmp_path), name + kind.encode(), room.LESSON.encode())
        os.makedirs(folder)
        make(Path(os.fsdecode(folder)) / f"{room.LESSON}.ipynb")
        (Path(os.fsdecode(folder)) / "timestamp.txt").write_bytes(times[len(kind) % len(times)])
    for student in student_folder.students(tmp_path, room.LESSON):
        found = student_folder.read(tmp_path, student, room.LESSON)
        assert len(found.fingerprint(b"against")) == 64 and found.shown.isprintable()
        assert bool(found.data) != bool(found.rejected)
        assert not found.rejected or found.rejected.reason.isprintable()
        assert bool(found.data) == (student in ("adagraded", "adatext"))
