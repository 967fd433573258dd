"""A launched game and the connection to it: asked, watched, and in the end closed.

Rules: every reply tells the game's status, which is noted; the end of the process wakes whoever
waits, and is told as GAME_EXITED with its exit code even where the broken connection was noticed
first; `close` gives everything back, whatever state the game is in.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
from typing import Final

from s2clientprotocol import sc2api_pb2 as sc_pb

from sc2pool.deadline import Deadline
from sc2pool.errors import FaultKind, GameFault
from sc2pool.game.connection import Extend
from sc2pool.game.launch import Launched
from sc2pool.protocol import replies
from sc2pool.protocol.status import Status

_EXIT_GRACE_S: Final = 1.0
"""A dying process closes its socket first and is reported as ended a little later."""


class RunningGame:
    """The process, its port and its connection; of one task at a time."""

    def __init__(self, launched: Launched) -> None:
        self._process = launched.process
        self._lease = launched.lease
        self._connection = launched.connection
        self._closed = False
        self.pid = launched.process.pid
        self.port = launched.lease.port
        self.listener_proven = launched.listener_proven
        """Whether the system told that the port's listener is this game."""
        self.status = Status.UNKNOWN

        # The descriptor is watched twice, here and by the caller, and an event loop takes one
        # reader for each: so this one is a duplicate.
        self._exit_fd = os.dup(launched.process.exited_fd)
        self._event_loop = asyncio.get_running_loop()
        self._event_loop.add_reader(self._exit_fd, self._on_exit)

    @property
    def exited_fd(self) -> int:
        """Readable once the process has ended; it belongs to the game."""
        return self._process.exited_fd

    def exit_fault(self) -> GameFault:
        """The end of the process as a fault, with its exit code and the end of its log."""
        return self._process.exit_fault(FaultKind.GAME_EXITED)

    def cpu_seconds(self) -> float:
        """CPU time the game has used."""
        return self._process.cpu_seconds()

    def rss_bytes(self) -> int:
        """The game's resident memory."""
        return self._process.rss_bytes()

    def log_tail(self, lines: int = 20) -> str:
        """The last lines of the game's output; also after `close`."""
        return self._process.log_tail(lines)

    def close(self) -> None:
        """Kills the game and gives everything back; bounded, and may be called again."""
        if self._closed:
            return
        self._closed = True
        self._connection.abort()
        with contextlib.suppress(RuntimeError):  # the event loop is closed
            self._event_loop.remove_reader(self._exit_fd)
        os.close(self._exit_fd)
        self._process.close()
        self._lease.release()

    # ---- asking -----------------------------------------------------------------------------

    async def _ask(
        self, request: sc_pb.Request, deadline: Deadline, extend: Extend | None = None
    ) -> sc_pb.Response:
        """One request that must be carried out."""
        (reply,) = await self._burst([request], deadline, extend)
        self._set_status(reply)
        replies.require(reply, replies.expected_kind(request))
        return reply

    async def _burst(
        self,
        asked: list[sc_pb.Request],
        deadline: Deadline,
        extend: Extend | None,
        sparse: bool = False,
    ) -> list[sc_pb.Response]:
        try:
            return await self._connection.burst(asked, deadline, extend, sparse)
        except GameFault as fault:
            lost = fault.kind is FaultKind.CONNECTION_LOST and not self._closed
            if lost and await self._ends_soon():
                raise self._process.exit_fault(FaultKind.GAME_EXITED) from fault
            raise

    async def _ends_soon(self) -> bool:
        grace = Deadline.after(_EXIT_GRACE_S)
        while self._process.exit_code() is None:
            if grace.expired():
                return False
            await asyncio.sleep(0.005)
        return True

    def _set_status(self, reply: sc_pb.Response) -> None:
        self.status = Status(reply.status)

    def _on_exit(self) -> None:
        self._event_loop.remove_reader(self._exit_fd)
        self._connection.fail(self._process.exit_fault(FaultKind.GAME_EXITED))
