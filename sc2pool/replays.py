"""Lets a game read a replay, and gives the replay's description and frames.

    with open_replay(Path("match.SC2Replay")) as replay:
        print(replay.info.map_name)
        frames = list(replay.frames(player=1, every_loops=8))

The stand-in cannot play replays of StarCraft II, and StarCraft II cannot play the stand-in's
replays.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from s2clientprotocol import sc2api_pb2 as sc_pb

from sc2pool.config import Limits
from sc2pool.deadline import Deadline
from sc2pool.errors import ConfigError
from sc2pool.foreign import read_bytes
from sc2pool.game.game import Game
from sc2pool.game.program.installation import find_installation
from sc2pool.protocol.replies import Status, require

MOST_BYTES = 64 * 1024 * 1024
"""The largest replay, in bytes; a replay is sent to the game in one message."""


@contextmanager
def open_replay(path: Path, game: str = "auto") -> Iterator[Replay]:
    """Launch a game, and let it read a replay; the game ends after the block.

    Args:
        path: The replay's file.
        game: One of "auto", "real" and "standin", or the path of an installation.

    Raises:
        ConfigError: the file cannot be read or is too large, the game is not installed, or the game
            refuses the file as a replay.
        GameFault: the game cannot be launched, or has failed.
    """
    content = read_bytes(path, MOST_BYTES)
    limits = Limits()
    with asyncio.Runner(loop_factory=asyncio.SelectorEventLoop) as runner:
        launched = runner.run(
            Game.launch(find_installation(game), limits, deadline=Deadline.after(limits.launch_s))
        )
        try:
            yield Replay(path, content, launched, runner)
        finally:
            launched.close()


class Replay:
    """A replay that a game has read; made by `open_replay`.

    Attributes:
        info: The map, the length, the version, and each player with the player's result.
    """

    def __init__(self, path: Path, content: bytes, game: Game, runner: asyncio.Runner) -> None:
        self._content = content
        self._game = game
        self._runner = runner
        request = sc_pb.RequestReplayInfo(replay_data=content)
        reply = self._request(sc_pb.Request(replay_info=request))
        try:
            require(reply, "replay_info")
        except ConfigError as error:
            raise ConfigError(f"{path} is not a replay of this game: {error}") from error
        self.info = reply.replay_info

    def frames(self, player: int, every_loops: int) -> Iterator[Any]:
        """Play the replay once, and draw its frames.

        Args:
            player: The number of the player whose sight is drawn.
            every_loops: The number of game loops from one frame to the next.

        Yields:
            Frames, uint8 (480, 640, 3), from the first loop to the last.

        Raises:
            ConfigError: the game does not play the replay.
            GameFault: the game has failed.
        """
        from sc2pool.render.frame import draw  # noqa: PLC0415 - needs Pillow

        options = sc_pb.InterfaceOptions(raw=True, score=True)
        start = sc_pb.RequestStartReplay(
            replay_data=self._content, observed_player_id=player, options=options
        )
        require(self._request(sc_pb.Request(start_replay=start)), "start_replay")
        info = self._runner.run(self._game.game_info())
        status = Status.IN_REPLAY
        while True:
            seen = self._request(sc_pb.Request(observation=sc_pb.RequestObservation()))
            yield draw(info, seen.observation.observation)
            if status != Status.IN_REPLAY:
                return
            stepped = self._request(sc_pb.Request(step=sc_pb.RequestStep(count=every_loops)))
            status = Status(stepped.status)

    def _request(self, request: sc_pb.Request) -> sc_pb.Response:
        return self._runner.run(self._game.request(request))
