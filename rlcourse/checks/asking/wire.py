"""Cases and outcomes as bytes: JSON and raw tensors, on a pipe and in files.

A message is a JSON header and the bytes of its tensors. Decoding builds only numbers, strings,
containers, tensors and the records of ``calling``, ``case`` and ``specs``; no name in a
message is ever looked up, no code is ever loaded. Everything is bounded: the size of a message
before it is read, its depth, the number of its parts, the length of every string.
"""

import json
import math
import re
import struct
from dataclasses import MISSING, fields
from typing import Any

import torch
from torch import Tensor

from rlcourse.checks.asking import calling
from rlcourse.checks.asking.calling import Facts, Failure, Opaque, Outcome
from rlcourse.checks.asking.case import Case
from rlcourse.checks.asking.specs import Spec

DTYPES = {str(dtype).removeprefix("torch."): dtype for dtype in calling.DTYPES}
RECORDS = {record.__name__: record for record in (Spec, Case, Outcome, Failure, Facts, Opaque)}
_NONE = object()
FIELDS: dict[type, dict[str, Any]] = {
    record: {
        field.name: _NONE
        if field.default is MISSING and field.default_factory is MISSING
        else field.default
        if field.default_factory is MISSING
        else field.default_factory()
        for field in fields(record)
    }
    for record in RECORDS.values()
}
LARGEST_MESSAGE = 16 * 2**20
LONGEST_STRING = 200_000
MOST_PARTS = 100_000
MOST_MARKS = 4 * MOST_PARTS  # brackets and commas of a header, counted before it is parsed
LONGEST_DIMENSION = 2**31
DEEPEST = 32
MOST_DIMENSIONS = 16
LENGTHS = struct.Struct("<II")  # of the header and of the bytes after it
# Controls would move a terminal's cursor, lone surrogates cannot be written to a file.
_UNPRINTABLE = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\ud800-\udfff]")


class BrokenMessage(Exception):
    """What was received is not a message: malformed, too large, or cut off."""


def clean(text: str) -> str:
    """Text that can be printed and written: control characters and half characters taken out."""
    return _UNPRINTABLE.sub("\ufffd", text)


def dumps(value: Any) -> bytes:
    """`value` as one message. Raises ``BrokenMessage`` for anything that is not data."""
    blobs: list[bytes] = []
    header = json.dumps(_encode(value, blobs, 0), separators=(",", ":")).encode()
    body = b"".join(blobs)
    if len(header) + len(body) > LARGEST_MESSAGE:
        raise BrokenMessage("the message is too large")
    return LENGTHS.pack(len(header), len(body)) + header + body


def _encode(value: Any, blobs: list[bytes], depth: int) -> Any:
    if depth > DEEPEST:
        raise BrokenMessage("the value is nested too deeply")
    kind = type(value)
    if value is None or kind in (bool, float) or (kind is int and abs(value) < 1 << 64):
        return value
    if kind is str:
        return clean(value[:LONGEST_STRING])
    if isinstance(value, Tensor):
        return _encode_tensor(value.detach(), blobs)
    if kind in (list, tuple):
        return {"list" if kind is list else "tuple": _encode_all(value, blobs, depth)}
    if kind is dict:
        items = [[str(key), item] for key, item in value.items()]
        return {"dict": [[key, _encode(item, blobs, depth + 1)] for key, item in items]}
    if kind in RECORDS.values():
        said = [(name, getattr(value, name)) for name in FIELDS[kind]]
        fields = [
            [name, _encode(item, blobs, depth + 1)]
            for name, item in said
            if not _is_default(kind, name, item)
        ]
        return {"record": kind.__name__, "fields": fields}
    return {"record": "Opaque", "fields": [["type", clean(kind.__name__)]]}


def _is_default(kind: type, name: str, item: Any) -> bool:
    """Whether a record that is made without the field gets exactly this value."""
    default = FIELDS[kind][name]
    return type(item) is type(default) and item == default


def _encode_all(values, blobs, depth):
    return [_encode(item, blobs, depth + 1) for item in values]


def _encode_tensor(tensor: Tensor, blobs: list[bytes]) -> Any:
    name = str(tensor.dtype).removeprefix("torch.")
    known = name in DTYPES and tensor.layout == torch.strided and tensor.device.type == "cpu"
    if not known or tensor.dim() > MOST_DIMENSIONS:
        return {"record": "Opaque", "fields": [["type", f"Tensor of {name}"]]}
    elements = math.prod(n for n in tensor.shape if n)
    if max(elements, tensor.numel() * tensor.element_size()) > LARGEST_MESSAGE:
        raise BrokenMessage("a tensor is too large")
    # also of one number, which torch calls contiguous whatever its stride is
    flat = torch.empty(tensor.numel(), dtype=tensor.dtype).copy_(tensor.reshape(-1))
    blobs.append(flat.view(torch.uint8).numpy().tobytes() if flat.numel() else b"")
    return {"tensor": name, "shape": list(tensor.shape), "bytes": len(blobs[-1])}


def loads(message: bytes) -> Any:
    """The value of a whole message; ``BrokenMessage`` if anything is wrong with it."""
    if len(message) < LENGTHS.size:
        raise BrokenMessage("the message is too short")
    header_size, body_size = LENGTHS.unpack_from(message)
    if len(message) != LENGTHS.size + header_size + body_size:
        raise BrokenMessage("the message's length is not the one that it states")
    header = message[LENGTHS.size : LENGTHS.size + header_size]
    body = memoryview(message)[LENGTHS.size + header_size :]
    if sum(map(header.count, (b"{", b"[", b","))) > MOST_MARKS:
        raise BrokenMessage("the message has too many parts")
    try:
        decoder = _Decoder(body)
        value = decoder.decode(json.loads(header), 0)
    except BrokenMessage:
        raise
    except Exception as error:  # whatever torch or json raise, it is not a message
        raise BrokenMessage(f"malformed: {type(error).__name__}") from None
    if decoder.position != len(body):
        raise BrokenMessage("there are bytes that no tensor claims")
    return value


class _Decoder:
    def __init__(self, body: memoryview):
        self.body = body
        self.position = 0
        self.parts = 0

    def decode(self, node: Any, depth: int) -> Any:
        self.parts += 1
        if depth > DEEPEST or self.parts > MOST_PARTS:
            raise BrokenMessage("the value is nested too deeply or has too many parts")
        kind = type(node)
        if node is None or kind is bool or kind is float:
            return node
        if kind is int:
            if abs(node) >= 1 << 64:
                raise BrokenMessage("an integer is too large")
            return node
        if kind is str:
            return clean(node[:LONGEST_STRING])
        if kind is not dict:
            raise BrokenMessage("an unknown kind of value")
        if "tensor" in node:
            return self.tensor(DTYPES[node["tensor"]], node["shape"], node["bytes"])
        if "list" in node:
            return [self.decode(item, depth + 1) for item in _items(node["list"])]
        if "tuple" in node:
            return tuple(self.decode(item, depth + 1) for item in _items(node["tuple"]))
        if "dict" in node:
            return self.pairs(node["dict"], depth)
        return RECORDS[node["record"]](**self.pairs(node["fields"], depth))

    def pairs(self, found: list, depth: int) -> dict[str, Any]:
        pairs = [(name, self.decode(item, depth + 1)) for name, item in _items(found)]
        if not all(isinstance(name, str) for name, _ in pairs):
            raise BrokenMessage("a name that is not text")
        return {clean(name): value for name, value in pairs}

    def tensor(self, dtype: torch.dtype, shape: list, size: int) -> Tensor:
        _items(shape)
        if len(shape) > MOST_DIMENSIONS or not all(
            type(n) is int and 0 <= n < LONGEST_DIMENSION for n in shape
        ):
            raise BrokenMessage("a tensor's shape is impossible")
        if math.prod(n for n in shape if n) > LARGEST_MESSAGE:  # an empty one costs nothing to send
            raise BrokenMessage("a tensor is too large")
        expected = math.prod(shape) * dtype.itemsize
        end = self.position + expected
        if size != expected or end > len(self.body):
            raise BrokenMessage("a tensor's size does not match its shape")
        data, self.position = self.body[self.position : end], end
        if not data:
            return torch.empty(shape, dtype=dtype)
        raw = torch.frombuffer(bytearray(data), dtype=torch.uint8)
        if dtype == torch.bool:
            return (raw != 0).reshape(shape)  # a byte of 2 would be neither True nor False
        return raw.view(dtype).reshape(shape)


def _items(node: Any) -> list:
    if not isinstance(node, list):
        raise BrokenMessage("no list where one is expected")
    return node
