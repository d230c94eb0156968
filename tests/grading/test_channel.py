"""A message arrives as it was sent; anything else is refused."""

import json
import math
import os
import socket
import struct
import threading
import time

import pytest
import torch

from rlcourse.checks.asking import wire
from rlcourse.checks.asking.calling import Failure, Opaque, Outcome, identical
from rlcourse.checks.asking.specs import Spec
from rlcourse.exercises import all as all_exercises
from rlcourse.grading.confinement.channel import Channel, Closed, TooLarge


def same(a, b) -> bool:
    if hasattr(a, "__dataclass_fields__"):
        return type(a) is type(b) and same(vars(a), vars(b))
    if isinstance(a, dict):
        return a.keys() == b.keys() and all(same(a[k], b[k]) for k in a)
    if isinstance(a, list | tuple):
        return type(a) is type(b) and len(a) == len(b) and all(map(same, a, b))
    return identical(a, b)


def passed_on(value):
    return wire.loads(wire.dumps(value))


@pytest.mark.parametrize("exercise", all_exercises(), ids=lambda e: e.name)
def test_every_case_of_every_exercise_survives_the_pipe(exercise):
    for case in exercise.draw_cases(seed=3) + exercise.draw_cases(seed=3, hidden=True):
        assert same(passed_on(case), case), case.label


def test_values_of_every_kind_survive():
    values = [None, True, 3, -0.0, math.nan, math.inf, "ü", (1, [2.5, {"a": ()}]), Opaque("x")]
    values += [torch.zeros(0, 3), torch.tensor(True), torch.arange(6).reshape(2, 3)[:, ::2]]
    values += [torch.randn(2, 3).to(dtype) for dtype in wire.DTYPES.values()]
    values += [Outcome(1.0, {"x": None}, error=Failure("E", "m", 3)), Spec("sgd", {})]
    for value in values:
        assert same(passed_on(value), value), value


def test_what_is_no_data_arrives_as_the_name_of_its_type():
    assert passed_on({"f": open, "t": torch.ones(1).to(torch.complex64)}) == {
        "f": Opaque("builtin_function_or_method"),
        "t": Opaque("Tensor of complex64"),
    }


def test_controls_and_half_characters_are_taken_out_of_text():
    assert passed_on("a\x1b[2J\ud83d\tb\n") == "a\ufffd[2J\ufffd\tb\n"


def message(header, body=b""):
    header = header if isinstance(header, bytes) else json.dumps(header).encode()
    return struct.pack("<II", len(header), len(body)) + header + body


@pytest.mark.parametrize(
    "broken",
    [
        message(b"{"),
        message(b"\xff"),
        message(b"[" * 100_000),
        message([1]),
        message({"tensor": "float64", "shape": [2], "bytes": 8}, b"12345678"),
        message({"tensor": "float64", "shape": [-1], "bytes": 8}, b"12345678"),
        message({"tensor": "float64", "shape": [1 << 62, 1 << 62], "bytes": 8}, b"12345678"),
        message({"tensor": "object", "shape": [1], "bytes": 8}, b"12345678"),
        message({"record": "os.system", "fields": [["command", "true"]]}),
        message({"record": "Outcome", "fields": [["nonsense", 1]]}),
        message(1 << 70),
        message(None, b"unclaimed"),
        message(None)[:-1],
        message({"tensor": "float64", "shape": [0, 1 << 62, 1 << 62], "bytes": 0}),
        message({"tensor": "float64", "shape": [10**9, 0], "bytes": 0}),
        message({"list": "abc"}),
        message({"dict": [[{"a": 1}, 1]]}),
        message(b"[" + b"{}," * 1_000_000 + b"1]"),
        b"",
    ],
    ids=range(19),
)
def test_malformed_messages_are_refused(broken):
    with pytest.raises(wire.BrokenMessage):
        wire.loads(broken)


def test_an_empty_tensor_that_would_be_large_to_print_is_not_sent():
    with pytest.raises(wire.BrokenMessage):
        wire.dumps(torch.empty(10**9, 0))
    assert same(passed_on(torch.empty(1000, 0)), torch.empty(1000, 0))


def test_booleans_are_zero_or_one_whatever_the_bytes():
    raw = message({"tensor": "bool", "shape": [3], "bytes": 3}, b"\x00\x01\x07")
    assert wire.loads(raw).tolist() == [False, True, True]


def test_a_message_that_drips_ends_at_the_deadline():
    ours, theirs = socket.socketpair()

    def drip():
        try:
            theirs.sendall(struct.pack("<II", 1000, 0))
            while True:
                theirs.sendall(b" ")
                time.sleep(0.01)
        except OSError:
            return

    threading.Thread(target=drip, daemon=True).start()
    # Were every byte to renew the time, the whole message would arrive, ten seconds later.
    with Channel(ours) as channel, pytest.raises(TimeoutError):
        channel.receive(time.monotonic() + 0.3)


def test_a_message_is_measured_before_it_is_read():
    ours, theirs = socket.socketpair()
    with Channel(ours) as channel, theirs:
        assert not channel.has_more()
        theirs.sendall(struct.pack("<II", 1 << 31, 1 << 31))
        assert channel.has_more()
        with pytest.raises(TooLarge):
            channel.receive(time.monotonic() + 300)
        theirs.close()
        with pytest.raises(Closed):
            channel.receive(time.monotonic() + 300)


def test_messages_with_bytes_and_descriptors_arrive_in_order():
    ours, theirs = map(Channel, socket.socketpair())
    reads, writes = os.pipe()
    with ours, theirs:
        ours.tell({"a": [1]}, b"\0bytes", (writes,))
        ours.tell(None)
        assert theirs.hear() == ({"a": [1]}, b"\0bytes")
        (passed,) = theirs.take()
        assert theirs.hear(5) == (None, b"")
        os.write(passed, b"x")
        assert os.read(reads, 1) == b"x"
        with pytest.raises(TimeoutError):
            theirs.hear(0.01)
        ours.tell("a descriptor should follow")
        theirs.hear()
        ours.stream.close()
        with pytest.raises(Closed):
            theirs.take()
    for end in (reads, writes, passed):
        os.close(end)
