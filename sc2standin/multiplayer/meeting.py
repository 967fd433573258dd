"""Connects the processes of two players, while join_game waits in both.

    host    listens on the game port of `server_ports`, and sends create_game and its join_game
    guest   connects to this port, and sends its join_game

Rules it keeps: either process may come first. The host listens only until the guest has connected.
Both wait for at most JOIN_TIMEOUT_S. In the end both know the same requests.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final

from google.protobuf.message import DecodeError  # type: ignore[import-untyped]
from s2clientprotocol import sc2api_pb2 as sc_pb

from sc2standin.multiplayer.link import Link

JoinError = sc_pb.ResponseJoinGame.Error
Problem = tuple[JoinError.ValueType, str]
JOIN_TIMEOUT_S: Final = 120.0
"""How long join_game waits for the other player. Starting a game takes up to a minute."""
_GREETING_S: Final = 5.0
"""How long the host waits for the greeting of a process that has connected."""
_RETRY_S: Final = 0.02
"""Time between two attempts of the guest to connect."""
_GREETING: Final = 0x53432D31
"""The loop of a greeting; a process that connects by mistake sends another number."""


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
    """The reason why the meeting failed, or None; valid when it is done."""
    link: Link = field(default_factory=Link)
    create: sc_pb.RequestCreateGame = field(default_factory=sc_pb.RequestCreateGame)
    other_join: sc_pb.RequestJoinGame = field(default_factory=sc_pb.RequestJoinGame)
    task: asyncio.Task[None] | None = None

    def cancel(self) -> None:
        """End the meeting, because the game will not begin."""
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
        except (OSError, ValueError, DecodeError) as error:  # a ValueError: no such address
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
            with contextlib.suppress(OSError, DecodeError):  # TimeoutError is an OSError
                request = await asyncio.wait_for(_greeting(link), _GREETING_S)
                break
            link.close()  # a stranger
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
        with contextlib.suppress(OSError):  # the host does not listen yet
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
