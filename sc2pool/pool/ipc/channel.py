"""What a trainer and one worker tell each other through sockets: messages, and orders.

    Channel   a stream socket that carries whole messages, of one instance
    Control   the worker's socket for the trainer's orders, with the descriptors that come along

Both ends are ours, on a socket pair that no other process holds. A message is a pickle in a frame:
a 4-byte length and its bytes. An order is a pickle, too. POSIX: in a datagram, with the descriptors
beside it. Windows: in a frame of a stream, with copies of them (`processes.windows`).

Rules: sending a message is bounded in time, because a stopped peer does not read; receiving never
waits (call it when the socket is readable). With orders neither side waits. A worker's end without
its trainer is of no use, because the worker ends with it.
"""

from __future__ import annotations

import pickle
import socket
import struct
from collections.abc import Iterator
from contextlib import suppress
from multiprocessing.connection import wait
from typing import Any, Final

from sc2pool.platform import WINDOWS
from sc2pool.pool.ipc.pickling import for_trainer
from sc2pool.processes import windows

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


_MOST_BYTES: Final = 1 << 16
_MOST_DESCRIPTORS: Final = 2


class Control:
    """One end of a worker's control socket.

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


def socket_pair() -> tuple[socket.socket, socket.socket]:
    """Two stream sockets that are connected with each other.

    Raises:
        OSError: the system has no descriptors left.
    """
    pair = socket.socketpair()
    if WINDOWS:  # it has TCP only, which would hold a small message back for the one before it
        for end in pair:
            end.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return pair
