"""Sockets between a trainer and a worker: messages of each instance, and the trainer's orders.

    Channel   a stream socket with the messages of one instance
    Control   the worker's socket for the trainer's orders, which carry descriptors

Both ends belong to this package, on a socket pair that no other process holds. A message is a
pickle in a frame: a 4-byte length and its bytes. An order is a pickle too. On POSIX it is a
datagram with descriptors, on Windows a frame in a stream with copied descriptors
(`processes.windows`).

Rules: sending a message has a time limit, because a stopped peer does not read. Receiving never
waits, so call it when the socket is readable. With orders neither side waits. A worker needs no
recovery from a lost trainer, because it ends with the trainer.
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
    """The other end of the channel is closed."""


class Channel:
    """One end of an instance's channel."""

    def __init__(self, connection: socket.socket, send_timeout_s: float | None = None) -> None:
        self._socket = connection
        self._socket.settimeout(send_timeout_s)
        self._buffer = bytearray()

    def fileno(self) -> int:
        return self._socket.fileno()

    def readable(self, timeout_s: float) -> bool:
        """Wait until data or the end can be received; return False after `timeout_s`."""
        return bool(wait([self._socket], timeout_s))

    def send(self, message: Any) -> None:
        """Send one message.

        Raises:
            ChannelClosedError: the peer has closed its end, or did not read within the timeout.
        """
        data = for_trainer(message)  # uses cloudpickle if a space's class is in the script
        try:
            self._socket.sendall(frame(data))
        except OSError as error:
            # The message may be half sent, and no other can follow it: end the channel.
            with suppress(OSError):
                self._socket.shutdown(socket.SHUT_RDWR)
            raise ChannelClosedError(str(error)) from error

    def receive(self) -> list[Any]:
        """Read once, and return the messages that are complete now (maybe none).

        Raises:
            ChannelClosedError: the peer has closed its end, and all its messages were returned.
        """
        self._buffer += self.skip()
        return [pickle.loads(message) for message in take_frames(self._buffer)]

    def skip(self) -> bytes:
        """Read once, and return the bytes without unpickling messages.

        Raises:
            ChannelClosedError: the peer has closed its end.
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
        peer_pid: the worker's pid. Set it on the trainer's end before `send`.
    """

    def __init__(self, connection: socket.socket) -> None:
        self._socket = connection
        self._socket.setblocking(False)
        self._received = bytearray()
        self.peer_pid = 0

    @classmethod
    def pair(cls) -> tuple[Control, socket.socket]:
        """The trainer's end, and the worker's socket.

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
            order: a value to pickle.
            channel: a socket to send with the order. The worker gets its own descriptor, and the
                caller closes this one.
            spec: the descriptor of a memory, sent together with `channel`.

        Raises:
            OSError: the worker has exited, or does not read.
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
        """The received orders, each with its descriptors; None if the trainer has exited."""
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
    """The bytes to send for one message: its length and its content."""
    return _LENGTH.pack(len(data)) + data


def take_frames(received: bytearray) -> Iterator[bytes]:
    """Take the complete messages (maybe none) from the front of the received bytes.

    A message is removed when the next one is requested, so it stays if the caller fails to read it.
    """
    while len(received) >= _LENGTH.size:
        (length,) = _LENGTH.unpack_from(received)
        end = _LENGTH.size + length
        if len(received) < end:
            return
        yield bytes(received[_LENGTH.size : end])
        del received[:end]


def socket_pair() -> tuple[socket.socket, socket.socket]:
    """Two connected stream sockets.

    Raises:
        OSError: the system has no descriptors left.
    """
    pair = socket.socketpair()
    if WINDOWS:  # TCP there: Nagle's algorithm would delay small messages
        for end in pair:
            end.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return pair
