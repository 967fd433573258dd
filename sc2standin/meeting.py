"""Connects the processes of two players, while join_game waits in both.

`Link` is the connection: a TCP socket on the game's own port. A frame consists of a loop, a size,
and as many bytes as the size says. The bytes are a serialized request. A frame without bytes is a
message with the loop alone. Frames that arrive before there is a receiver are kept for it. Bytes
that are not a frame close the connection. When the connection ends, the receiver gets one call that
reports the end, unless this process has called `close`.

A `Meeting` has two sides:
* The host listens on the game port of `server_ports`, and sends create_game and its join_game.
* The guest connects to the host's port, and sends its join_game.

Either process may come first. The host listens only until the guest has connected. Each side waits
for the other at most JOIN_TIMEOUT_S. After the meeting both processes know create_game, and the
join_game of both players.
"""

from __future__ import annotations

import asyncio
import contextlib
import struct
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final

from google.protobuf.message import DecodeError  # type: ignore[import-untyped]
from s2clientprotocol import sc2api_pb2 as sc_pb

_HEAD: Final = struct.Struct("<II")
_MAX_BYTES: Final = 64 * 1024 * 1024
"""The largest size of a frame, both between two processes and on the websocket."""
Frame = tuple[int, bytes]
"""A loop, and the bytes of a serialized request; no bytes if the loop alone is the message."""


class Link(asyncio.Protocol):
    """One side of the connection between two processes."""

    def __init__(self) -> None:
        self._transport: asyncio.Transport | None = None
        self._buffer = bytearray()
        self._frames: deque[Frame] = deque()
        self._arrived = asyncio.Event()
        """An event that is set if a frame has arrived or the connection is lost."""
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
        """Tell the receiver that the peer is gone, unless this side has closed the connection."""
        self._is_lost = True
        self._arrived.set()
        self._deliver()

    async def next_frame(self) -> Frame:
        """The next frame, if no receiver is set; raises ConnectionError after the last frame."""
        while not self._frames:
            if self._is_lost:
                raise ConnectionError("the other player's process is gone")
            self._arrived.clear()
            await self._arrived.wait()
        return self._frames.popleft()

    def deliver_to(self, receive: Callable[[int, bytes], None], lose: Callable[[], None]) -> None:
        """From now on, call `receive` with each frame, and call `lose` when the peer is gone."""
        self._receive, self._lose = receive, lose
        self._deliver()

    def repeat(self, period_s: float, call: Callable[[], None]) -> None:
        """Call a function periodically until this side closes the connection."""

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


JoinError = sc_pb.ResponseJoinGame.Error
Problem = tuple[JoinError.ValueType, str]
JOIN_TIMEOUT_S: Final = 120.0
"""How long join_game waits for the other player; that player's game may take a minute to start."""
_GREETING_S: Final = 5.0
"""How long the host waits for the greeting of a process that has connected."""
_RETRY_S: Final = 0.02
"""Time between two attempts of the guest to connect, in seconds."""
_GREETING: Final = 0x53432D31
"""A greeting has this number as its loop; the number marks the sender as a process of the game."""


@dataclass(frozen=True)
class Invitation:
    """A process's knowledge of the game before it has met its peer."""

    address: str
    port: int
    join: sc_pb.RequestJoinGame
    create: sc_pb.RequestCreateGame | None
    """The host's create_game; None in the guest's process."""


@dataclass
class Meeting:
    """A process's knowledge of the game after it has met its peer."""

    is_host: bool
    done: bool = False
    problem: Problem | None = None
    """The reason why the meeting failed, or None; not valid before `done` is True."""
    link: Link = field(default_factory=Link)
    create: sc_pb.RequestCreateGame = field(default_factory=sc_pb.RequestCreateGame)
    other_join: sc_pb.RequestJoinGame = field(default_factory=sc_pb.RequestJoinGame)
    task: asyncio.Task[None] | None = None

    def cancel(self) -> None:
        """End the meeting and close the connection, because the game will not begin."""
        if self.task is not None:
            self.task.cancel()
        self.link.close()


def begin_meeting(invitation: Invitation, when_done: Callable[[], None]) -> Meeting:
    """Begin to look for the other process, in the running event loop."""
    meeting = Meeting(is_host=invitation.create is not None)

    async def run() -> None:
        try:
            await asyncio.wait_for(_meet(meeting, invitation), JOIN_TIMEOUT_S)
        except TimeoutError:
            why = f"the other player did not come within {JOIN_TIMEOUT_S:.0f} s"
            meeting.problem = JoinError.NetworkError, why
        except (OSError, ValueError, DecodeError) as error:  # ValueError means a wrong address
            why = f"{invitation.address}:{invitation.port}: {error}"
            meeting.problem = JoinError.NetworkError, why
        meeting.done = True
        when_done()

    meeting.task = asyncio.get_running_loop().create_task(run())
    return meeting


async def _meet(meeting: Meeting, invitation: Invitation) -> None:
    if invitation.create is None:
        await _find_host(meeting, invitation)
    else:
        await _wait_for_guest(meeting, invitation, invitation.create)


async def _wait_for_guest(
    meeting: Meeting, invitation: Invitation, create: sc_pb.RequestCreateGame
) -> None:
    guests: asyncio.Queue[Link] = asyncio.Queue()

    def admit() -> Link:
        link = Link()
        guests.put_nowait(link)
        return link

    loop = asyncio.get_running_loop()
    server = await loop.create_server(admit, invitation.address, invitation.port)
    try:
        while True:
            meeting.link = link = await guests.get()
            with contextlib.suppress(OSError, DecodeError):  # OSError includes TimeoutError
                request = await asyncio.wait_for(_greeting(link), _GREETING_S)
                break
            link.close()  # the program that connected was not a process of the game
    finally:
        server.close()
        while not guests.empty():
            guests.get_nowait().close()
    meeting.other_join = request.join_game
    _greet(link, sc_pb.Request(create_game=create))
    _greet(link, sc_pb.Request(join_game=invitation.join))


async def _find_host(meeting: Meeting, invitation: Invitation) -> None:
    loop = asyncio.get_running_loop()
    while True:
        with contextlib.suppress(OSError):  # the host is perhaps not listening yet
            _, link = await loop.create_connection(Link, invitation.address, invitation.port)
            meeting.link = link
            _greet(link, sc_pb.Request(join_game=invitation.join))
            create, join = await _greeting(link), await _greeting(link)
            break
        meeting.link.close()
        await asyncio.sleep(_RETRY_S)
    meeting.create, meeting.other_join = create.create_game, join.join_game


def _greet(link: Link, request: sc_pb.Request) -> None:
    link.send(_GREETING, request.SerializeToString())


async def _greeting(link: Link) -> sc_pb.Request:
    number, content = await link.next_frame()
    if number != _GREETING:
        raise ConnectionError("this is not a process of the game")
    request: sc_pb.Request = sc_pb.Request.FromString(content)
    return request
