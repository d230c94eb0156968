"""The one form in which the processes of grading talk: messages over a socket.

A message is the lengths of its two parts, a JSON header, and bytes. ``checks.asking.wire`` makes
messages of tensors and reads them; plain ones are made here. Nothing outside the standard library
is imported, because the server of student code is confined before it imports anything.
"""

import json
import socket
import struct
import time
from typing import Any

LENGTHS = struct.Struct("<II")  # of the header and of the bytes after it
LARGEST = 256 * 2**20


class Closed(Exception):
    """The other end is gone."""


class TooLarge(Exception):
    """A message that announces more than is taken."""


class Channel:
    """One end of a stream socket. A deadline is one of ``time.monotonic``; after it both ways end
    in ``TimeoutError``, however the message drips."""

    def __init__(self, stream: socket.socket):
        self.stream = stream

    def __enter__(self) -> "Channel":
        return self

    def __exit__(self, *_) -> None:
        self.stream.close()

    def send(self, message: bytes, deadline: float | None = None) -> None:
        """Send a whole message, lengths included."""
        try:
            self.stream.settimeout(_left(deadline))
            self.stream.sendall(message)
        except TimeoutError:
            raise
        except OSError as error:
            raise Closed(str(error)) from None

    def receive(self, deadline: float | None = None, largest: int = LARGEST) -> bytes:
        """The next message, lengths included. It is measured before it is read."""
        lengths = self._exactly(LENGTHS.size, deadline)
        size = sum(LENGTHS.unpack(lengths))
        if size > largest:
            raise TooLarge("the message is too large")
        return lengths + self._exactly(size, deadline)

    def _exactly(self, size: int, deadline: float | None) -> bytes:
        found = bytearray()
        while len(found) < size:
            try:
                self.stream.settimeout(_left(deadline))
                part = self.stream.recv(min(size - len(found), 1 << 20))
            except TimeoutError:
                raise
            except OSError as error:
                raise Closed(str(error)) from None
            if not part:
                raise Closed("the other side closed it")
            found += part
        return bytes(found)

    def has_more(self, seconds: float = 0.0) -> bool:
        """Whether something can be read, or the other end is gone, within that many seconds."""
        try:
            self.stream.settimeout(max(0.0, seconds))
            self.stream.recv(1, socket.MSG_PEEK)
        except (TimeoutError, BlockingIOError):
            return False
        except OSError:
            pass  # the reader will find out
        return True

    # Plain messages, between processes that trust each other

    def tell(self, value: Any, body: bytes = b"", descriptors: tuple[int, ...] = ()) -> None:
        """Send JSON and bytes, with descriptors for the other side to ``take``."""
        header = json.dumps(value).encode()
        self.send(LENGTHS.pack(len(header), len(body)) + header + body)
        if descriptors:
            try:
                socket.send_fds(self.stream, [b"d"], list(descriptors))
            except OSError as error:
                raise Closed(str(error)) from None

    def hear(self, seconds: float | None = None) -> tuple[Any, bytes]:
        """The next message: its JSON, its bytes."""
        message = self.receive(None if seconds is None else time.monotonic() + seconds)
        end = LENGTHS.size + LENGTHS.unpack_from(message)[0]
        return json.loads(message[LENGTHS.size : end]), message[end:]

    def take(self, most: int = 1) -> list[int]:
        """The descriptors that follow a message."""
        try:
            found = socket.recv_fds(self.stream, 1, most)[1]
        except OSError as error:
            raise Closed(str(error)) from None
        if not found:
            raise Closed("a descriptor is missing")
        return found


def _left(deadline: float | None) -> float | None:
    if deadline is None:
        return None
    left = deadline - time.monotonic()
    if left <= 0:
        raise TimeoutError
    return left
