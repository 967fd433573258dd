"""Reads a websocket's answers without the event loop, where that may be blocked in.

    event loop    selector ─► transport ─► parser ─► frames      (any loop; also the way back)
    direct               socket ─────────► parser ─► frames

It is one and the same parser, picows', an `asyncio.BufferedProtocol`: only who reads the socket
for it differs. Rule: at any time exactly one of them reads.
"""

from __future__ import annotations

import asyncio
import socket

from sc2pool.waiting import BlockingWait


class DirectReader:
    """The direct way to the answers of one connection.

    Args:
        sock: the connection's socket; not closed here.
        transport: asyncio's, of the same socket.
    """

    def __init__(self, sock: socket.socket, transport: asyncio.Transport) -> None:
        protocol = transport.get_protocol()
        assert isinstance(protocol, asyncio.BufferedProtocol)
        self._sock = sock
        self._transport = transport
        self._parser = protocol
        self._wait = BlockingWait(sock.fileno())
        self._reading = False

    def take_over(self) -> bool:
        """Read in place of the event loop from now on, if that may be."""
        if not self._wait.possible:
            self.give_back()
            return False
        if not self._reading:
            self._transport.pause_reading()
            self._reading = True
        return True

    def give_back(self) -> None:
        """Let the event loop read again."""
        if self._reading:
            self._reading = False
            self._transport.resume_reading()

    def send(self, data: bytes) -> None:
        """Send all of it; what the socket does not take now is sent by the event loop."""
        try:
            sent = self._sock.send(data)
        except BlockingIOError:
            sent = 0
        if sent < len(data):
            self._transport.write(data[sent:])

    def wait(self, timeout_s: float) -> bool:
        """Block until there is something to read; False if it was for the loop, or too late."""
        return self._wait.wait(timeout_s)

    def read(self) -> bool:
        """Hand the parser all there is to read; False at the end of the connection."""
        while True:
            buffer = memoryview(self._parser.get_buffer(-1))
            try:
                got = self._sock.recv_into(buffer)
            except BlockingIOError:
                return True
            if got == 0:
                return False
            self._parser.buffer_updated(got)
            if self._transport.is_closing():  # the parser has given it up
                return False
            if got < len(buffer):
                return True

    def close(self) -> None:
        """Stop watching the socket."""
        self._wait.close()
