"""Pairs of connected sockets, for doorbells, channels and orders."""

from __future__ import annotations

import socket

from sc2pool.platform import WINDOWS


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
