"""A worker's control socket: the trainer's orders, one by one, and the descriptors that come along.

Each order is a datagram of its own, a pickle; both ends are ours. Rules: neither side waits; the
worker's end of a trainer that is gone is of no use, because the worker ends with it.
"""

from __future__ import annotations

import pickle
import socket
from collections.abc import Sequence
from typing import Any

from sc2pool.platform import WINDOWS

_MOST_BYTES = 1 << 16
_MOST_DESCRIPTORS = 2


class Control:
    """One end."""

    def __init__(self, connection: socket.socket) -> None:
        self._socket = connection
        self._socket.setblocking(False)

    @classmethod
    def pair(cls) -> tuple[Control, socket.socket]:
        """The trainer's end, and what the worker inherits.

        Raises:
            OSError: the system has no descriptors left.
        """
        if WINDOWS:
            raise NotImplementedError("no pool is made on Windows")
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)
        return cls(ours), theirs

    def fileno(self) -> int:
        return self._socket.fileno()

    def send(self, order: Any, descriptors: Sequence[int] = ()) -> None:
        """Send an order, and duplicates of these descriptors.

        Raises:
            OSError: the worker has ended, or does not read.
        """
        if WINDOWS:
            raise NotImplementedError("no pool is made on Windows")
        socket.send_fds(self._socket, [pickle.dumps(order)], descriptors)

    def receive(self) -> tuple[Any, list[int]] | None:
        """The next order and its descriptors; None if the trainer is gone."""
        if WINDOWS:
            raise NotImplementedError("no pool is made on Windows")
        data, descriptors, _, _ = socket.recv_fds(self._socket, _MOST_BYTES, _MOST_DESCRIPTORS)
        return (pickle.loads(data), descriptors) if data else None

    def close(self) -> None:
        self._socket.close()
