"""The layer below the websocket: a game's socket, outgoing frames, and three ways to read answers.

    Event loop:   selector ─► transport ─► parser ─► frames      (any loop, and as a fallback).
    Direct way:          socket ─────────► parser ─► frames.
    Compiled way:        socket ─► the replies of a step         (unusual bytes ─► parser).

The event loop and the direct way use picows' parser, an `asyncio.BufferedProtocol`. Rules: at any
time exactly one of the three ways reads. The compiled way begins only between two messages.
"""

from __future__ import annotations

import asyncio
import errno
import os
import socket
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Final

from s2clientprotocol import sc2api_pb2 as sc_pb

from sc2pool.game.program.lease import HOST
from sc2pool.protocol import compiled
from sc2pool.waiting import BlockingWait, Turn, Turns, WorkerLoop

if TYPE_CHECKING:
    from sc2pool._fast import Plain, Unusual

_CONNECTIONS: Final = Path("/proc/net/tcp")
"""The kernel's table of connections, which only Linux has."""


class NotReadyError(Exception):
    """No process answers on the port, or the process does not speak the API (yet).

    Attributes:
        answer: The reply of a program other than the game to the handshake; empty without a reply.
        final: True if the answer is not HTTP, so that the program will never speak the API.
    """

    def __init__(self, why: str = "", answer: str = "", *, final: bool = False) -> None:
        super().__init__(why)
        self.answer = answer
        self.final = final


def connect(port: int) -> socket.socket:
    """Connects a socket to the local `port`; sends nothing.

    Raises NotReadyError if nothing listens on the port. Raises OSError if this machine cannot reach
    itself, for example because its loopback device is down.
    """
    sock = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    try:
        sock.settimeout(1.0)  # a local connection is accepted or refused immediately
        sock.connect((HOST, port))
        sock.setblocking(False)
    except OSError as error:
        sock.close()
        if error.errno == errno.ENETUNREACH:
            raise OSError(error.errno, f"{os.strerror(error.errno)}: {HOST}") from error
        raise NotReadyError(f"nothing listens on port {port}: {error}") from error
    return sock


def unread_bytes(sock: socket.socket) -> int | None:
    """How many sent bytes the socket's local peer has not read; None if unknown or disconnected."""
    try:
        own, peer = sock.getsockname()[1], sock.getpeername()[1]
        lines = _CONNECTIONS.read_text().splitlines()[1:]
    except OSError:
        return None
    for line in lines:
        _, local, remote, _, queues = line.split(maxsplit=5)[:5]
        if (_port_of(local), _port_of(remote)) == (peer, own):
            return int(queues.partition(":")[2], 16)
    return None


def _port_of(address: str) -> int:
    """The port of an address in the kernel's table of connections."""
    return int(address.rpartition(":")[2], 16)


def frames(requests: Iterable[sc_pb.Request]) -> bytes:
    """The requests as a client's binary websocket messages, joined for one write.

    The mask that websockets require is zero: other masks only protect proxies, and there is no
    proxy between us and the game.
    """
    framed = []
    for request in requests:
        payload = request.SerializeToString()
        length = len(payload)
        if length < 126:
            framed.append(b"\x82%c\0\0\0\0%b" % (0x80 | length, payload))
        elif length < 1 << 16:
            framed.append(b"\x82\xfe%b\0\0\0\0%b" % (length.to_bytes(2), payload))
        else:
            framed.append(b"\x82\xff%b\0\0\0\0%b" % (length.to_bytes(8), payload))
    return b"".join(framed)


class DirectReader:
    """Reads a connection's answers in place of the event loop; does not close `sock`."""

    def __init__(self, sock: socket.socket, transport: asyncio.Transport) -> None:
        protocol = transport.get_protocol()
        assert isinstance(protocol, asyncio.BufferedProtocol)
        self._sock = sock
        self._transport = transport
        self._parser = protocol
        self._wait = BlockingWait(sock.fileno())
        self._reading = False
        self.between_messages = False
        """Whether the bytes read so far end with a whole message; the listener sets this."""
        loop = asyncio.get_running_loop()
        self._turns = loop.turns if isinstance(loop, WorkerLoop) else None
        self._turn: Turn | None = None  # None unless tasks take turns to read
        self._compiled = None
        if compiled.fast and isinstance(loop, WorkerLoop) and self._turns is not None:
            self._compiled = compiled.fast.Wire(sock.fileno(), loop.descriptor)

    def take_over(self) -> bool:
        """From now on read in place of the event loop; False if the loop may not be blocked."""
        if not self._wait.possible:
            return False
        self._leave_turns()
        self._begin_reading()
        return True

    def _begin_reading(self) -> None:
        if not self._reading:
            self._transport.pause_reading()
            self._reading = True

    def _take_turns(self, turns: Turns) -> Turn:
        """From now on read in place of the event loop, in turns with the loop's other tasks."""
        self._begin_reading()
        if self._turn is None:
            self._turn = Turn(asyncio.get_running_loop())
            turns.watch(self._sock.fileno(), self._turn.go_on)
        return self._turn

    def give_back(self) -> None:
        """Let the event loop read again."""
        self._leave_turns()
        if self._reading:
            self._reading = False
            self.between_messages = False  # the loop may have read a part of a message
            self._transport.resume_reading()

    def send(self, data: bytes) -> None:
        """Send `data`. The event loop sends those bytes that the socket does not take at once."""
        try:
            sent = self._sock.send(data)
        except BlockingIOError:
            sent = 0
        if sent < len(data):
            self.send_rest(data[sent:])

    @property
    def has_compiled(self) -> bool:
        """True if `step` can be called now."""
        return self._compiled is not None and self.between_messages

    async def step(
        self, first_id: int, actions: list[bytes], loops: int, deadline_s: float
    ) -> Plain | Unusual:
        """Send a step; return its usual replies, or an `Unusual` (see `_fast.Wire.step`)."""
        wire, turns = self._compiled, self._turns
        assert wire is not None and turns is not None
        if self._wait.possible:
            if self._turn is not None or not self._reading:
                self.take_over()
            return wire.step(first_id, actions, loops, deadline_s)
        turn = self._take_turns(turns)
        if wire.begin(first_id, actions, loops):
            while await turns.wait(turn, deadline_s):
                outcome = wire.finish()
                if outcome is not None:
                    return outcome
        return wire.taken()

    def _leave_turns(self) -> None:
        if self._turn is not None and self._turns is not None:
            self._turns.forget(self._sock.fileno())
            self._turn = None

    def send_rest(self, data: bytes) -> None:
        """Let the event loop send the bytes that the socket did not take."""
        self._transport.write(data)

    def wait(self, timeout_s: float) -> bool:
        """Block until bytes can be read; False after `timeout_s`, or if the loop has work."""
        return self._wait.wait(timeout_s)

    def read(self) -> bool:
        """Give all available bytes to the parser; False if the connection has ended."""
        while True:
            buffer = memoryview(self._parser.get_buffer(-1))
            try:
                got = self._sock.recv_into(buffer)
            except BlockingIOError:
                return True
            if got == 0 or not self._parse(got):
                return False
            if got < len(buffer):
                return True

    def feed(self, data: bytes) -> bool:
        """Give the bytes that `step` has read to the parser; False if the connection has ended."""
        while data:
            buffer = memoryview(self._parser.get_buffer(-1))
            part, data = data[: len(buffer)], data[len(buffer) :]
            buffer[: len(part)] = part
            if not self._parse(len(part)):
                return False
        return True

    def _parse(self, got: int) -> bool:
        self.between_messages = False
        self._parser.buffer_updated(got)
        return not self._transport.is_closing()  # if False, the parser has closed the connection

    def close(self) -> None:
        """Stop watching the socket."""
        self._leave_turns()
        self._wait.close()
