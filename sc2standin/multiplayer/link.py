"""The connection between the processes of two players: a TCP socket on the game's own port.

A frame is a loop, a size and that many bytes: a serialized request, or nothing if the loop itself
is the message.

Rules it keeps: frames that arrive before there is a receiver are kept for it. Bytes that are not a
frame close the connection. The receiver is notified once that the peer is gone, but not if this
side has closed the connection.
"""

from __future__ import annotations

import asyncio
import struct
from collections import deque
from collections.abc import Callable
from typing import Final

_HEAD: Final = struct.Struct("<II")
_MAX_BYTES: Final = 64 * 1024 * 1024
"""The largest request, as on the websocket."""
Frame = tuple[int, bytes]
"""A loop, and a request or nothing."""


class Link(asyncio.Protocol):
    """One side of the connection."""

    def __init__(self) -> None:
        self._transport: asyncio.Transport | None = None
        self._buffer = bytearray()
        self._frames: deque[Frame] = deque()
        self._arrived = asyncio.Event()
        """Set if a frame has arrived or the connection is lost."""
        self._is_lost = False
        self._receive: Callable[[int, bytes], None] | None = None
        self._lose: Callable[[], None] | None = None
        self._timer: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Keep the transport of the connection."""
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport

    def data_received(self, data: bytes) -> None:
        """Read the frames from the stream."""
        self._buffer += data
        while len(self._buffer) >= _HEAD.size:
            loop, size = _HEAD.unpack_from(self._buffer)
            if size > _MAX_BYTES and self._transport is not None:
                self._transport.abort()
                return
            if len(self._buffer) < _HEAD.size + size:
                return
            content = bytes(self._buffer[_HEAD.size : _HEAD.size + size])
            del self._buffer[: _HEAD.size + size]
            self._frames.append((loop, content))
            self._arrived.set()
        self._deliver()

    def connection_lost(self, _error: Exception | None) -> None:
        """Notify the receiver if the peer is gone; this side may also have closed."""
        self._is_lost = True
        self._arrived.set()
        self._deliver()

    async def next_frame(self) -> Frame:
        """The next frame, for use without a receiver; raises ConnectionError after the last one."""
        while not self._frames:
            if self._is_lost:
                raise ConnectionError("the other player's process is gone")
            self._arrived.clear()
            await self._arrived.wait()
        return self._frames.popleft()

    def deliver_to(self, receive: Callable[[int, bytes], None], lose: Callable[[], None]) -> None:
        """From now on call `receive` with each frame, and `lose` when the peer is gone."""
        self._receive, self._lose = receive, lose
        self._deliver()

    def repeat(self, period_s: float, call: Callable[[], None]) -> None:
        """Call this periodically until this side closes the connection."""

        def again() -> None:
            call()
            self.repeat(period_s, call)

        if self._transport is not None:
            self._timer = asyncio.get_running_loop().call_later(period_s, again)

    def send(self, loop: int, content: bytes = b"") -> None:
        """Send a frame; does nothing if the peer is gone."""
        if self._transport is not None and not self._is_lost:
            self._transport.write(_HEAD.pack(loop, len(content)) + content)

    def close(self) -> None:
        """Close the connection after everything is sent."""
        self._receive = self._lose = None
        if self._timer is not None:
            self._timer.cancel()
        if self._transport is not None:
            self._transport.close()
            self._transport = None

    def _deliver(self) -> None:
        while self._frames and self._receive is not None:
            self._receive(*self._frames.popleft())
        if self._is_lost and self._lose is not None:
            lose, self._lose = self._lose, None
            lose()
