"""A bare websocket client, for tests of misuse that client libraries forbid.

Tests send garbage, fragments and an `Origin` header, and open a second connection.
"""

from __future__ import annotations

import base64
import os
import socket
import struct
from contextlib import suppress
from typing import Any

from s2clientprotocol import sc2api_pb2 as sc_pb

TIMEOUT_S = 20.0


class HandshakeRefused(Exception):
    """The server answered the request for a websocket with another status than 101."""

    def __init__(self, status: int) -> None:
        super().__init__(status)
        self.status = status


class Wire:
    """A connection that speaks protobuf."""

    def __init__(self, port: int, path: str = "/sc2api", headers: str = "") -> None:
        self.socket = socket.create_connection(("127.0.0.1", port), timeout=TIMEOUT_S)
        key = base64.b64encode(os.urandom(16)).decode()
        self.socket.sendall(
            f"GET {path} HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nUpgrade: websocket\r\n"
            f"Connection: Upgrade\r\nSec-WebSocket-Key: {key}\r\n"
            f"Sec-WebSocket-Version: 13\r\n{headers}\r\n".encode()
        )
        head = b""
        while b"\r\n\r\n" not in head:
            head += self._read(1)
        status = int(head.split(b" ", 2)[1])
        if status != 101:
            self.socket.close()
            raise HandshakeRefused(status)

    def send_frame(self, payload: bytes, *, opcode: int = 2, fin: bool = True) -> None:
        """Send one frame."""
        first = bytes([(0x80 if fin else 0) | opcode])
        if len(payload) < 126:
            length = bytes([0x80 | len(payload)])
        elif len(payload) < 1 << 16:
            length = b"\xfe" + struct.pack("!H", len(payload))
        else:
            length = b"\xff" + struct.pack("!Q", len(payload))
        self.socket.sendall(first + length + bytes(4) + payload)  # a frame's mask may be all zeros

    def receive(self) -> bytes:
        """The content of the next frame."""
        _first, length = self._read(2)
        if length == 126:
            (length,) = struct.unpack("!H", self._read(2))
        elif length == 127:
            (length,) = struct.unpack("!Q", self._read(8))
        return self._read(length)

    def send(self, **request: Any) -> None:
        """Send a request."""
        self.send_frame(sc_pb.Request(**request).SerializeToString())

    def reply(self) -> sc_pb.Response:
        """Wait for the next reply."""
        return sc_pb.Response.FromString(self.receive())

    def ask(self, **request: Any) -> sc_pb.Response:
        """Send a request and wait for its reply."""
        self.send(**request)
        return self.reply()

    def close(self) -> None:
        """End the connection; after that the game accepts the next client."""
        with suppress(OSError):
            self.send_frame(b"", opcode=8)
            while self.socket.recv(4096):
                pass
        self.socket.close()

    def _read(self, count: int) -> bytes:
        data = b""
        while len(data) < count:
            part = self.socket.recv(count - len(data))
            if not part:
                raise ConnectionError("closed by the game")
            data += part
        return data
