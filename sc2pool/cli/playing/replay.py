"""`sc2pool replay`: describes a replay, or draws it as an animated picture.

A game plays only its own replays: the stand-in does not play those of StarCraft II, and vice versa.
"""

from __future__ import annotations

import argparse
from collections.abc import AsyncIterator, Awaitable, Callable

from s2clientprotocol import common_pb2
from s2clientprotocol import sc2api_pb2 as sc_pb

from sc2pool.cli.arguments import check_file
from sc2pool.cli.table import duration, game_name
from sc2pool.config import Limits
from sc2pool.deadline import Deadline
from sc2pool.errors import ConfigError
from sc2pool.foreign import printable, read_bytes
from sc2pool.game.game import Game
from sc2pool.game.program.installation import find
from sc2pool.protocol.game_time import LOOPS_PER_S
from sc2pool.protocol.replies import Status, require
from sc2pool.waiting import run_in_selector_loop

MOST_BYTES = 64 * 1024 * 1024
"""Limit of a replay, which is sent to the game in one message."""


def run(args: argparse.Namespace) -> int:
    """Describe or draw the replay."""
    content = read_bytes(args.replay, MOST_BYTES)
    if args.picture is not None:
        check_file(args.picture, "PICTURE.gif", [".gif"])
    act = _summarise if args.picture is None else _draw
    told = run_in_selector_loop(_with_game(args, lambda game: act(game, content, args)))
    print(printable(told, None, keep="\n"))
    return 0


async def _with_game(args: argparse.Namespace, act: Callable[[Game], Awaitable[str]]) -> str:
    """Launch a game, and return the result of `act` with it."""
    limits = Limits()
    game = await Game.launch(find(args.game), limits, deadline=Deadline.after(limits.launch_s))
    try:
        return await act(game)
    finally:
        game.close()


async def _summarise(game: Game, content: bytes, args: argparse.Namespace) -> str:
    """Map, length and version, and the result of each player."""
    info = await _info(game, content, args)
    return "\n".join(
        [
            f"{args.replay}: {printable(info.map_name)}, {info.game_duration_loops:,} loops "
            f"({duration(info.game_duration_loops / LOOPS_PER_S)}), "
            f"{game_name(info.game_version)}",
            *(f"  {_player(one)}" for one in info.player_info),
        ]
    )


async def _info(game: Game, content: bytes, args: argparse.Namespace) -> sc_pb.ResponseReplayInfo:
    """The replay's description.

    Raises:
        ConfigError: the game does not take the file for a replay.
    """
    request = sc_pb.RequestReplayInfo(replay_data=content)
    reply = await game.request(sc_pb.Request(replay_info=request))
    try:
        require(reply, "replay_info")
    except ConfigError as error:
        raise ConfigError(f"{args.replay} is not a replay of this game: {error}") from error
    return reply.replay_info


def _player(extra: sc_pb.PlayerInfoExtra) -> str:
    player, result = extra.player_info, "no result"
    if extra.HasField("player_result"):
        result = sc_pb.Result.Name(extra.player_result.result).lower()
    kind = sc_pb.PlayerType.Name(player.type).lower()
    race = common_pb2.Race.Name(player.race_actual or player.race_requested).lower()
    return f"player {player.player_id}: {kind}, {race}, {result}"


async def _draw(game: Game, content: bytes, args: argparse.Namespace) -> str:
    """Draw all frames of the replay."""
    from sc2pool.cli.playing.picture import (  # noqa: PLC0415 - needs Pillow
        MOST_FRAMES,
        frame_of,
        write_picture,
    )
    from sc2pool.render.frame import draw  # noqa: PLC0415

    request = sc_pb.RequestStartReplay(
        replay_data=content,
        observed_player_id=args.player,
        options=sc_pb.InterfaceOptions(raw=True, score=True),
    )
    loops = (await _info(game, content, args)).game_duration_loops
    if loops // args.every >= MOST_FRAMES:
        raise ConfigError(
            f"{args.replay} has {loops:,} loops, of which a picture shows at most {MOST_FRAMES:,}: "
            f"give --every {loops // MOST_FRAMES + 1} or more"
        )
    require(await game.request(sc_pb.Request(start_replay=request)), "start_replay")
    info = await game.game_info()
    frames = [frame_of(draw(info, seen)) async for seen in _observations_of(game, args.every)]
    try:
        write_picture(args.picture, frames, LOOPS_PER_S / args.every)
    except OSError as error:
        raise ConfigError(f"cannot write {args.picture}: {error.strerror or error}") from error
    return f"{args.picture}: {len(frames)} frames"


async def _observations_of(game: Game, every_loops: int) -> AsyncIterator[sc_pb.Observation]:
    """The current observation, and one after each step until the replay is over."""
    status = Status.IN_REPLAY
    while True:
        seen = await game.request(sc_pb.Request(observation=sc_pb.RequestObservation()))
        yield seen.observation.observation
        if status != Status.IN_REPLAY:
            return
        stepped = await game.request(sc_pb.Request(step=sc_pb.RequestStep(count=every_loops)))
        status = Status(stepped.status)
