"""A worker's control socket: the trainer's orders, one by one, and the descriptors that come along.

Each order is a pickle; both ends are ours. POSIX: a datagram, with the descriptors beside it.
Windows: a frame of a stream, with copies of them (`processes.windows`). Rules: neither side waits;
the worker's end of a trainer that is gone is of no use, because the worker ends with it.
"""

from __future__ import annotations

import pickle
import socket
from typing import Any, Final

from sc2pool.platform import WINDOWS
from sc2pool.pool.ipc.frames import frame, take_frames
from sc2pool.pool.ipc.pairs import socket_pair
from sc2pool.processes import windows

_MOST_BYTES: Final = 1 << 16
_MOST_DESCRIPTORS: Final = 2


class Control:
    """One end.

    Attributes:
        peer_pid: of the worker; the trainer's end must know it before it sends.
    """

    def __init__(self, connection: socket.socket) -> None:
        self._socket = connection
        self._socket.setblocking(False)
        self._received = bytearray()
        self.peer_pid = 0

    @classmethod
    def pair(cls) -> tuple[Control, socket.socket]:
        """The trainer's end, and what the worker gets.

        Raises:
            OSError: the system has no descriptors left.
        """
        if WINDOWS:
            ours, theirs = socket_pair()
        else:
            ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)
        return cls(ours), theirs

    def fileno(self) -> int:
        return self._socket.fileno()

    def send(self, order: Any, channel: socket.socket | None = None, spec: int = -1) -> None:
        """Send an order.

        Args:
            order: to be pickled.
            channel: goes along, as the worker's own; the caller closes this one.
            spec: the descriptor of a memory that goes along with it.

        Raises:
            OSError: the worker has ended, or does not read.
        """
        if WINDOWS:
            copies = None
            if channel is not None:
                copied = windows.copied_socket(channel.fileno(), self.peer_pid)
                copies = copied, windows.copied_file(spec, self.peer_pid)
            data = frame(pickle.dumps((order, copies)))
            if self._socket.send(data) != len(data):
                raise BlockingIOError("the worker does not read")
        else:
            descriptors = () if channel is None else (channel.fileno(), spec)
            socket.send_fds(self._socket, [pickle.dumps(order)], descriptors)

    def receive(self) -> list[tuple[Any, list[int]]] | None:
        """The orders that have come, each with its descriptors; None if the trainer is gone."""
        if not WINDOWS:
            data, descriptors, _, _ = socket.recv_fds(self._socket, _MOST_BYTES, _MOST_DESCRIPTORS)
            return [(pickle.loads(data), descriptors)] if data else None
        try:
            data = self._socket.recv(_MOST_BYTES)
        except ConnectionError:
            return None
        if not data:
            return None
        self._received += data
        orders: list[tuple[Any, list[int]]] = []
        for message in take_frames(self._received):
            order, copies = pickle.loads(message)
            if copies is None:
                orders.append((order, []))
            else:
                channel, spec = copies
                orders.append((order, [windows.socket_of(channel), windows.file_of(spec)]))
        return orders

    def close(self) -> None:
        self._socket.close()
