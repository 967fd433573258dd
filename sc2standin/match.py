"""One process's part of a game of two clients; the two processes play in lock-step.

As in the real game, each process simulates the whole game. Both processes carry out both players'
requests, at the same loops and in the same order. Only the players' requests change the game. So a
process needs only the requests of its peer (the other process), and continues if the peer dies.
`meeting` connects the processes. A process sends its peer two kinds of frames:
* A loop alone: the sender's player has asked to play up to this loop.
* A loop and a request: the sender has carried out this action or debug request at this loop.

Rules of a match:
* A request is carried out in both processes at the same loop. So a player that has asked for loops
  cannot change anything until these loops are played.
* A loop is played when both players have asked for it, so both processes play the same loops. A
  player cannot withdraw a loop, because the other process may have played it already.
* In real time a process asks for each loop when the loop is due by its own clock. While an action
  waits for the loops already asked for, the process asks for no further loops, so the wait ends.
* The connection ends when a player leaves, or a player's process dies. The remaining player wins
  with the next loop. If a process hangs, its peer waits.
"""

from __future__ import annotations

import math
from collections.abc import Callable

from google.protobuf.message import DecodeError  # type: ignore[import-untyped]
from s2clientprotocol import sc2api_pb2 as sc_pb

from sc2standin.game_time import LOOPS_PER_S
from sc2standin.meeting import Link
from sc2standin.process.state import RequestRefused, State
from sc2standin.recording import RECORDED, without_ends
from sc2standin.status import Status

_LEAVE = sc_pb.Request(leave_game=sc_pb.RequestLeaveGame())


class Match:
    """One game of two clients; the object is created when the game begins.

    Args:
        state: the state of this process's player; `state.other` is the other player's state.
        link: the connection to the other player's process.
        perform: carries out a request of a player.
    """

    def __init__(
        self, state: State, link: Link, perform: Callable[[State, sc_pb.Request], None]
    ) -> None:
        assert state.other is not None
        self._state, self._other, self._game = state, state.other, state.playing()
        self._link, self._perform = link, perform
        self._asked = {player.player_id: 0 for player in state.players()}
        """The loop up to which each player has asked to play."""
        self.is_stepping = False
        """True while the client waits for the answer to a step."""
        self._holds = False
        """True while, in real time, the client's action or debug request waits for loops."""
        link.deliver_to(self._receive, self._end_without_other)
        if state.clock is not None:
            link.repeat(1.0 / LOOPS_PER_S, self._tick)

    def __repr__(self) -> str:
        return f"Match({self._asked}, loop {self._game.world.loop})"

    def wait_s(self, request: sc_pb.Request | None, loops: int) -> float:
        """Seconds until a request can be answered: 0, or infinity if the request waits for the
        other player.

        Args:
            request: the request; None if it could not be decoded.
            loops: the number of loops that the request asks for, if it is a step.
        """
        state, loop = self._state, self._game.world.loop
        if request is None or state.status is not Status.IN_GAME:
            return 0.0
        if state.clock is not None:
            state.catch_up()
            if request.HasField("observation") and request.observation.game_loop > loop:
                return self._unless_over(request.observation.game_loop)
        elif request.HasField("step"):
            if not self.is_stepping:
                self.is_stepping = True
                self.play_to(loop + loops)
            return self._unless_over(self._asked[state.player_id])
        if request.WhichOneof("request") in RECORDED:
            wait_s = self._unless_over(self._asked[state.player_id])
            self._holds = wait_s > 0.0 and state.clock is not None
            return wait_s
        return 0.0

    def _unless_over(self, loop: int) -> float:
        is_over = self._game.world.loop >= loop or self._game.result is not None
        return 0.0 if is_over else math.inf

    def end_step(self) -> None:
        """End the client's step, because the step was answered or the client is gone."""
        self.is_stepping = self._holds = False

    def play_to(self, loop: int) -> None:
        """Ask for the loops up to this one, and play all for which both players have asked."""
        player = self._state.player_id
        if loop > self._asked[player] and not self._holds:
            self._asked[player] = loop
            self._link.send(loop)
        self._play()

    def tell(self, request: bytes) -> None:
        """Send a request of this player's client to the other process."""
        content = without_ends(request).SerializeToString()
        self._link.send(self._game.world.loop, content)

    def leave(self) -> None:
        """Close the connection, because this player leaves."""
        self._link.close()

    def _tick(self) -> None:
        self._state.catch_up()
        self._state.hooks.wake()

    def _play(self) -> None:
        # Repeat, because `advance` stops at the game's end, and a temper may continue the game.
        while self._game.result is None and self._state.fate is None:
            loops = min(self._asked.values()) - self._game.world.loop
            if loops <= 0:
                break
            self._state.advance(loops)

    def _receive(self, loop: int, content: bytes) -> None:
        """Handle a frame of the other process."""
        if self._game.result is not None:
            return
        if not content:
            player = self._other.player_id
            self._asked[player] = max(loop, self._asked[player])
            self._play()
            self._state.hooks.wake()
            return
        try:
            if loop != self._game.world.loop:
                raise RequestRefused("The other player's game is another one")
            self._perform(self._other, sc_pb.Request.FromString(content))
        except (DecodeError, RequestRefused):  # the games of the two processes differ
            self._link.close()
            self._end_without_other()
            return
        self._state.created().recording.note(loop, self._other.player_id, content)

    def _end_without_other(self) -> None:
        """Let the other player lose, because the player has left or its process is dead."""
        if self._game.result is not None:
            return
        player = self._other.player_id
        self._perform(self._other, _LEAVE)
        recording, left = self._state.created().recording, _LEAVE.SerializeToString()
        recording.note(self._game.world.loop, player, left)
        self._asked.pop(player, None)
        self._play()
        self._state.hooks.wake()
