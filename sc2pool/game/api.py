"""The API of one launched game: it sends requests and returns replies.

Rules: every reply contains the game's status, which is stored. The end of the process ends the
connection, and is reported as GAME_EXITED, with the exit code. `close` releases everything, in any
state of the game.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final

from s2clientprotocol import sc2api_pb2 as sc_pb

from sc2pool.deadline import Deadline
from sc2pool.errors import FaultKind, GameFault
from sc2pool.game.connection import Connection, Extend
from sc2pool.game.program.lease import PortLease
from sc2pool.game.program.process import GameProcess
from sc2pool.protocol import replies
from sc2pool.protocol.replies import Status

if TYPE_CHECKING:
    from sc2pool._fast import Plain

_EXIT_GRACE_S: Final = 1.0
"""How long the end of a dying process may be noticed after the end of its socket."""
_POLL_S: Final = 0.005


class GameAPI:
    """The process, its port and its connection; used by one asyncio task at a time.

    Attributes:
        process: the game's process.
        connection: the connection to the game.
        pid: the pid of the process that listens on the port: the game itself, which a script may
            have started. If the listener is unknown, the pid of the started process.
        port: the port on which the game listens.
        listener_proven: whether the system confirms that the port's listener is this game.
        status: the status in the newest reply.
    """

    def __init__(
        self,
        process: GameProcess,
        lease: PortLease,
        connection: Connection,
        listener_pid: int | None,
    ) -> None:
        self.process = process
        self.pid = process.pid if listener_pid is None else listener_pid
        self.port = lease.port
        self.listener_proven = listener_pid is not None
        self.status = Status.UNKNOWN
        self._lease = lease
        self.connection = connection
        self._closed = False

    async def ask(
        self, request: sc_pb.Request, deadline: Deadline, extend: Extend | None = None
    ) -> sc_pb.Response:
        """Sends one request that must succeed.

        Raises:
            GameFault: the game failed, or refused.
            ConfigError: the game refused because of the request's values, such as a map or player.
        """
        reply: sc_pb.Response
        (reply,) = await self.burst([request], deadline, extend)
        replies.require(reply, replies.expected_kind(request))
        return reply

    async def burst(
        self,
        requests: Sequence[sc_pb.Request],
        deadline: Deadline,
        extend: Extend | None = None,
        *,
        sparse: bool = False,
    ) -> list[Any]:
        """Like `Connection.burst`, but GAME_EXITED if the connection is lost because the game
        ended."""
        try:
            answered = await self.connection.burst(requests, deadline, extend, sparse)
        except GameFault as fault:
            await self._raise_if_exited(fault)
            raise
        self.status = Status(answered[-1].status)
        return answered

    async def step(
        self,
        actions: Sequence[sc_pb.Action],
        loops: int,
        deadline: Deadline,
        extend: Extend | None = None,
    ) -> Plain | list[Any]:
        """Like `Connection.step`, but GAME_EXITED if the connection is lost because the game
        ended."""
        try:
            answered = await self.connection.step(actions, loops, deadline, extend)
        except GameFault as fault:
            await self._raise_if_exited(fault)
            raise
        # The compiled path accepts only replies with this status.
        self.status = Status(answered[-1].status) if isinstance(answered, list) else Status.IN_GAME
        return answered

    def close(self) -> None:
        """Kills the game and releases everything, in bounded time; may be called again."""
        if self._closed:
            return
        self._closed = True
        # If its socket ends while a reply is pending, the real game treats it as a fatal error: it
        # writes a core file, spins, or floods its log. So kill the process first.
        self.process.kill()
        self.connection.abort()
        self.process.close()
        self._lease.release()

    async def _raise_if_exited(self, fault: GameFault) -> None:
        lost = fault.kind is FaultKind.CONNECTION_LOST and not self._closed
        if lost and await self._ends_soon():
            raise self.process.exit_fault() from fault

    async def _ends_soon(self) -> bool:
        grace = Deadline.after(_EXIT_GRACE_S)
        while self.process.exit_code() is None:
            if grace.expired():
                return False
            await asyncio.sleep(_POLL_S)
        return True
