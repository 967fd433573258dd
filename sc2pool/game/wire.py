"""Below the websocket: the socket to a game, the frames sent, and a direct way to the answers.

    event loop    selector ─► transport ─► parser ─► frames      (any loop; also the way back)
    direct               socket ─────────► parser ─► frames
    compiled             socket ─► the replies of a step         (else what has come ─► parser)

Both ways use the same parser, picows', an `asyncio.BufferedProtocol`; they differ in what reads
the socket for it. The compiled one is a form of the direct one for usual replies. Rules: at any
time exactly one of them reads; the compiled one begins only between two messages.
"""

from __future__ import annotations

import asyncio
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
"""The kernel's table of connections; only Linux has one."""


class NotReadyError(Exception):
    """No process answers on the port, or it does not speak the API (yet)."""


def connect(port: int) -> socket.socket:
    """A socket connected to `port` on this machine; not a byte is sent.

    Raises:
        NotReadyError: nothing listens there.
    """
    sock = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    try:
        sock.settimeout(1.0)  # on this machine a connection is accepted or refused at once
        sock.connect((HOST, port))
        sock.setblocking(False)
    except OSError as error:
        sock.close()
        raise NotReadyError(f"nothing listens on port {port}: {error}") from error
    return sock


def unread_bytes(sock: socket.socket) -> int | None:
    """How much of what was sent to a socket's peer on this machine the peer has not read.

    None if the system does not say, or the connection is closed.
    """
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
    """Requests as whole binary websocket messages of the client, one after the other.

    The mask every client must use is zero here: it protects proxies from hostile scripts, and
    between two processes on one machine there are neither. That makes one write of a burst.
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
    """Reads one connection's answers without the event loop, while that may be blocked.

    Args:
        sock: the connection's socket; not closed here.
        transport: asyncio's, of the same socket.

    Attributes:
        between_messages: whether all that was read ended with a whole message; the listener sets it
            with each message.
    """

    def __init__(self, sock: socket.socket, transport: asyncio.Transport) -> None:
        protocol = transport.get_protocol()
        assert isinstance(protocol, asyncio.BufferedProtocol)
        self._sock = sock
        self._transport = transport
        self._parser = protocol
        self._wait = BlockingWait(sock.fileno())
        self._reading = False
        self.between_messages = False
        loop = asyncio.get_running_loop()
        self._turns = loop.turns if isinstance(loop, WorkerLoop) else None
        self._turn: Turn | None = None  # while it takes turns
        self._compiled = None
        if compiled.fast and isinstance(loop, WorkerLoop) and self._turns is not None:
            self._compiled = compiled.fast.Wire(sock.fileno(), loop.descriptor)

    def take_over(self) -> bool:
        """Read instead of the event loop from now on, if the loop may be blocked."""
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
        """Read instead of the event loop's own watch from now on, in turns with other tasks."""
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
            self.between_messages = False  # the loop may read a part of one
            self._transport.resume_reading()

    def send(self, data: bytes) -> None:
        """Send all of it; what the socket does not take now is sent by the event loop."""
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
        """Send the requests of a step, and wait for usual replies; see `_fast.Wire.step`.

        It blocks the event loop if that is possible.
        """
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
        """Let the event loop send what the socket did not take."""
        self._transport.write(data)

    def wait(self, timeout_s: float) -> bool:
        """Block until there is something to read; False if the loop has work, or it is too late."""
        return self._wait.wait(timeout_s)

    def read(self) -> bool:
        """Hand the parser all there is to read; False at the end of the connection."""
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
        """Hand the parser what `step` has read; as `read`."""
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
        return not self._transport.is_closing()  # else the parser has given it up

    def close(self) -> None:
        """Stop watching the socket."""
        self._leave_turns()
        self._wait.close()
