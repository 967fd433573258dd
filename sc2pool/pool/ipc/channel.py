"""A stream socket that carries whole messages between a trainer and one worker.

Frames (`frames`) hold pickles; both ends are ours, on a socket pair that no other process
holds. Rules: sending is bounded in time, because a stopped peer does not read; receiving never
waits (call it when the socket is readable).
"""

from __future__ import annotations

import pickle
import socket
from contextlib import suppress
from multiprocessing.connection import wait
from typing import Any

from sc2pool.pool.ipc.frames import frame, take_frames
from sc2pool.pool.ipc.pickling import for_trainer

_CHUNK_BYTES = 1 << 18


class ChannelClosedError(Exception):
    """The other side is gone."""


class Channel:
    """One end of the channel."""

    def __init__(self, connection: socket.socket, send_timeout_s: float | None = None) -> None:
        self._socket = connection
        self._socket.settimeout(send_timeout_s)
        self._buffer = bytearray()

    def fileno(self) -> int:
        return self._socket.fileno()

    def readable(self, timeout_s: float) -> bool:
        """Wait until there is something to receive, or the end; False after this time."""
        return bool(wait([self._socket], timeout_s))

    def send(self, message: Any) -> None:
        """Send one message.

        Raises:
            ChannelClosedError: the peer is gone, or did not read within the send timeout.
        """
        data = for_trainer(message)  # a space may be of a class of the training script's
        try:
            self._socket.sendall(frame(data))
        except OSError as error:
            # Maybe half a message is out, and nothing can follow that: end it for both sides.
            with suppress(OSError):
                self._socket.shutdown(socket.SHUT_RDWR)
            raise ChannelClosedError(str(error)) from error

    def receive(self) -> list[Any]:
        """Read once, and return the messages that are complete now (maybe none).

        Raises:
            ChannelClosedError: the peer is gone, and all it sent has been returned before.
        """
        self._buffer += self.skip()
        return [pickle.loads(message) for message in take_frames(self._buffer)]

    def skip(self) -> bytes:
        """Read once; the caller drops what has come.

        Raises:
            ChannelClosedError: the peer is gone.
        """
        try:
            data = self._socket.recv(_CHUNK_BYTES)
        except OSError as error:
            raise ChannelClosedError(str(error)) from error
        if not data:
            raise ChannelClosedError("end of file")
        return data

    def close(self) -> None:
        self._socket.close()
