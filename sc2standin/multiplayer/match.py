"""A game of two clients, in the process of one of them.

Frames that go between the processes:

    loop              its player has asked to play up to this loop
    loop, request     its player's action or debug request was carried out at this loop

Rules it keeps:
- a request is carried out in both processes at the same loop. So a player that has asked for loops
  changes nothing until they are played;
- each process plays what both players have asked for, which is the same in both;
- in real time a process asks for each loop when it is due, by its own clock; while a request of its
  client waits for the loops that were asked for, it asks for no more, so that they do not recede;
- the connection ends when a player leaves, or its process dies: the other player has won with the
  next loop. A process that hangs lets the other one wait;
- a loop is played once both players have asked for it (`AskedLoops`); none takes back what it has
  asked for, because the other player's process may have played it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable

from google.protobuf.message import DecodeError  # type: ignore[import-untyped]
from s2clientprotocol import sc2api_pb2 as sc_pb

from sc2standin.game_time import LOOPS_PER_S
from sc2standin.multiplayer.link import Link
from sc2standin.process.state import RequestRefused, State
from sc2standin.replays.recording import RECORDED, without_ends
from sc2standin.status import Status

_LEAVE = sc_pb.Request(leave_game=sc_pb.RequestLeaveGame())


class Match:
    """The game of `state`, which has just begun.

    Args:
        state: the state of this process's player; `state.other` is the other one.
        link: the connection to the other player's process.
        perform: carries out a request of a player.
    """

    def __init__(
        self, state: State, link: Link, perform: Callable[[State, sc_pb.Request], None]
    ) -> None:
        assert state.other is not None
        self._state, self._other, self._game = state, state.other, state.playing()
        self._link, self._perform = link, perform
        self._asked = AskedLoops(player.player_id for player in state.players())
        self.is_stepping = False
        """True while the client waits for the answer to a step."""
        self._holds = False
        """True while a request that changes the game waits for loops that were asked for."""
        link.deliver_to(self._receive, self._end_without_other)
        if state.clock is not None:
            link.repeat(1.0 / LOOPS_PER_S, self._tick)

    def __repr__(self) -> str:
        return f"Match({self._asked}, loop {self._game.world.loop})"

    def wait_s(self, request: sc_pb.Request | None, loops: int) -> float:
        """Seconds until a request can be answered: 0, or infinity if it waits for the other player.

        Args:
            request: the request.
            loops: how many loops it asks for, if it is a step.
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
            return self._unless_over(self._asked.asked(state.player_id))
        if request.WhichOneof("request") in RECORDED:
            wait_s = self._unless_over(self._asked.asked(state.player_id))
            self._holds = wait_s > 0.0 and state.clock is not None
            return wait_s
        return 0.0

    def _unless_over(self, loop: int) -> float:
        is_over = self._game.world.loop >= loop or self._game.result is not None
        return 0.0 if is_over else math.inf

    def end_step(self) -> None:
        """The step is answered, or the client that asked for it is gone."""
        self.is_stepping = self._holds = False

    def play_to(self, loop: int) -> None:
        """This player asks to play up to a loop; play what both have asked for."""
        player = self._state.player_id
        if loop > self._asked.asked(player) and not self._holds:
            self._link.send(self._asked.ask(player, loop))
        self._play()

    def tell(self, request: bytes) -> None:
        """Tell the other process of a request that this player's client has sent."""
        content = without_ends(request).SerializeToString()
        self._link.send(self._game.world.loop, content)

    def leave(self) -> None:
        """This player leaves."""
        self._link.close()

    def _tick(self) -> None:
        self._state.catch_up()
        self._state.hooks.wake()

    def _play(self) -> None:
        # The game may play on after its end: what both have asked for must be played then, too.
        while self._game.result is None and self._state.fate is None:
            loops = self._asked.playable - self._game.world.loop
            if loops <= 0:
                break
            self._state.advance(loops)

    def _receive(self, loop: int, content: bytes) -> None:
        """A frame of the other process has arrived."""
        if self._game.result is not None:
            return
        if not content:
            self._asked.ask(self._other.player_id, loop)
            self._play()
            self._state.hooks.wake()
            return
        try:
            if loop != self._game.world.loop:
                raise RequestRefused("The other player's game is another one")
            self._perform(self._other, sc_pb.Request.FromString(content))
        except (DecodeError, RequestRefused):  # its process has carried it out
            self._link.close()
            self._end_without_other()
            return
        self._state.recorded().note(loop, self._other.player_id, content)

    def _end_without_other(self) -> None:
        """The other player has left, or its process is dead: it has lost."""
        if self._game.result is not None:
            return
        player = self._other.player_id
        self._perform(self._other, _LEAVE)
        self._state.recorded().note(self._game.world.loop, player, _LEAVE.SerializeToString())
        self._asked.leave(player)
        self._play()
        self._state.hooks.wake()


class AskedLoops:
    """Up to which loop each player has asked to play."""

    def __init__(self, players: Iterable[int]) -> None:
        self._asked = dict.fromkeys(players, 0)

    def __repr__(self) -> str:
        return f"AskedLoops({self._asked})"

    def ask(self, player: int, loop: int) -> int:
        """A player asks to play up to this loop; returns up to which one it has asked by now."""
        self._asked[player] = max(loop, self._asked[player])
        return self._asked[player]

    def asked(self, player: int) -> int:
        """Up to which loop a player has asked to play."""
        return self._asked[player]

    def leave(self, player: int) -> None:
        """A player takes no part any more; the other one plays alone."""
        self._asked.pop(player, None)

    @property
    def playable(self) -> int:
        """Up to which loop all players have asked to play."""
        return min(self._asked.values())
