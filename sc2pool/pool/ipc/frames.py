"""Whole messages on a stream: each is a 4-byte length and its bytes."""

from __future__ import annotations

import struct
from collections.abc import Iterator

_LENGTH = struct.Struct("!I")


def frame(data: bytes) -> bytes:
    """What to send for one message."""
    return _LENGTH.pack(len(data)) + data


def take_frames(received: bytearray) -> Iterator[bytes]:
    """The messages that are complete, taken from the front of what was received (maybe none).

    Each is taken once the next one is asked for: if the caller cannot read it, it stays.
    """
    while len(received) >= _LENGTH.size:
        (length,) = _LENGTH.unpack_from(received)
        end = _LENGTH.size + length
        if len(received) < end:
            return
        yield bytes(received[_LENGTH.size : end])
        del received[:end]
