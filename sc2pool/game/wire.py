"""Below the websocket: the socket to a game, and the frames that this side sends."""

from __future__ import annotations

import socket

from sc2pool.game.lease import HOST


class NotReadyError(Exception):
    """Something accepts connections on the port but does not speak the API (yet)."""


def connect(port: int) -> socket.socket:
    """A socket connected to `port` on this machine; not a byte is sent.

    Raises:
        NotReadyError: nobody listens there.
    """
    sock = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    try:
        sock.settimeout(1.0)  # on this machine a connection is accepted or refused at once
        sock.connect((HOST, port))
        sock.setblocking(False)
    except OSError as error:
        sock.close()
        raise NotReadyError(f"nobody listens on port {port}: {error}") from error
    return sock


def frame(payload: bytes) -> bytes:
    """A whole binary websocket message from the client.

    The mask every client must use is zero here: it protects proxies from hostile scripts, and
    between two processes on one machine there are neither. That makes one write of a burst.
    """
    length = len(payload)
    if length < 126:
        return b"\x82%c\0\0\0\0%b" % (0x80 | length, payload)
    if length < 1 << 16:
        return b"\x82\xfe%b\0\0\0\0%b" % (length.to_bytes(2), payload)
    return b"\x82\xff%b\0\0\0\0%b" % (length.to_bytes(8), payload)
