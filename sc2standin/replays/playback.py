"""Plays a replay: the game as it was created, with each recorded request at its loop.

Rules it keeps: requests of a loop are carried out when the replay goes on from there, so that an
observation of that loop comes before them, as it did in the game; a replay that was saved before
the game's end is over at that loop, and the result is undecided.
"""

from __future__ import annotations

from collections.abc import Callable

from s2clientprotocol import sc2api_pb2 as sc_pb

from sc2standin.replays.recording import Replay
from sc2standin.simulation.game import Game

Perform = Callable[[int, bytes], None]


class Playback:
    """A replay that is being watched.

    Args:
        perform: carries out a recorded request of a player, serialized.

    Attributes:
        sees_all: True if it is watched without fog.
        may_be_saved: True if the client asked for a recording of it.
    """

    def __init__(
        self, replay: Replay, perform: Perform, *, sees_all: bool, may_be_saved: bool
    ) -> None:
        self.sees_all = sees_all
        self.may_be_saved = may_be_saved
        self._perform = perform
        self._last_loop = replay.info.game_duration_loops
        self._requests = replay.requests
        self._done = 0

    def advance(self, game: Game, loops: int, stop: Callable[[], bool]) -> None:
        """Play this many loops, or until the replay is over, or until `stop()` is true."""
        end = min(game.world.loop + loops, self._last_loop)
        while game.world.loop < end and game.result is None and not stop():
            until = end
            while self._done < len(self._requests):
                loop, player, request = self._requests[self._done]
                if loop > game.world.loop:
                    until = min(end, loop)
                    break
                self._done += 1
                self._perform(player, request)
            game.advance(until - game.world.loop, stop)
        if game.result is None and game.world.loop >= self._last_loop:
            game.result = sc_pb.Undecided
