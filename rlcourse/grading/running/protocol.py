"""Messages on the pipe between the trusted and the untrusted process.

What they hold, and how it is bounded, is in ``rlcourse.checks.wire``.
"""

import socket
import time
from typing import Any

from rlcourse.checks.wire import (
    DTYPES,
    LARGEST_MESSAGE,
    LENGTHS,
    BrokenMessage,
    clean,
    dumps,
    loads,
)

__all__ = ["DTYPES", "BrokenMessage", "Closed", "clean", "dumps", "loads", "receive", "send"]


class Closed(BrokenMessage):
    """The other side is gone."""


def send(channel: socket.socket, message: bytes, deadline: float) -> None:
    """Send all of `message` before `deadline` (``time.monotonic``)."""
    try:
        channel.settimeout(_left(deadline))
        channel.sendall(message)
    except TimeoutError:
        raise
    except OSError as error:
        raise Closed(str(error)) from None


def receive(channel: socket.socket, deadline: float, largest: int = LARGEST_MESSAGE) -> Any:
    """The next message. ``TimeoutError`` when it is not complete by `deadline`, however it drips;
    ``Closed`` when the other side is gone, ``BrokenMessage`` when it sent something else."""
    lengths = _receive_exactly(channel, LENGTHS.size, deadline)
    size = sum(LENGTHS.unpack(lengths))
    if size > largest:
        raise BrokenMessage("the message is too large")
    return loads(lengths + _receive_exactly(channel, size, deadline))


def _receive_exactly(channel: socket.socket, size: int, deadline: float) -> bytes:
    received = bytearray()
    while len(received) < size:
        channel.settimeout(_left(deadline))
        try:
            chunk = channel.recv(min(size - len(received), 1 << 20))
        except TimeoutError:
            raise
        except OSError as error:
            raise Closed(str(error)) from None
        if not chunk:
            raise Closed("the other side closed the pipe")
        received += chunk
    return bytes(received)


def _left(deadline: float) -> float:
    left = deadline - time.monotonic()
    if left <= 0:
        raise TimeoutError
    return left
