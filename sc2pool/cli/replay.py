"""`sc2pool replay`: describes a replay, or draws it as an animated picture.

The stand-in cannot play replays of StarCraft II, and StarCraft II cannot play the stand-in's
replays.
"""

from __future__ import annotations

import argparse

from s2clientprotocol import common_pb2
from s2clientprotocol import sc2api_pb2 as sc_pb

from sc2pool.cli.arguments import check_file
from sc2pool.cli.stop import Stop
from sc2pool.cli.table import duration, game_name
from sc2pool.errors import ConfigError
from sc2pool.integration import LOOPS_PER_S
from sc2pool.replays import Replay, open_replay
from sc2pool.utilities import printable


def run(args: argparse.Namespace) -> int:
    if args.picture is not None:
        check_file(args.picture, "PICTURE.gif", [".gif"])
    # Without handlers, SIGTERM and SIGHUP would leave the game's temporary folder behind.
    with Stop().handling(), open_replay(args.replay, args.game) as replay:
        told = _summary(replay, args) if args.picture is None else _draw(replay, args)
    print(printable(told, None, keep="\n"))
    return 0


def _summary(replay: Replay, args: argparse.Namespace) -> str:
    """A text with the replay's map, length and game version, and each player's result."""
    info = replay.info
    return "\n".join(
        [
            f"{args.replay}: {printable(info.map_name)}, {info.game_duration_loops:,} loops "
            f"({duration(info.game_duration_loops / LOOPS_PER_S)}), "
            f"{game_name(info.game_version)}",
            *(f"  {_player(one)}" for one in info.player_info),
        ]
    )


def _player(extra: sc_pb.PlayerInfoExtra) -> str:
    player, result = extra.player_info, "no result"
    if extra.HasField("player_result"):
        result = sc_pb.Result.Name(extra.player_result.result).lower()
    kind = sc_pb.PlayerType.Name(player.type).lower()
    race = common_pb2.Race.Name(player.race_actual or player.race_requested).lower()
    return f"player {player.player_id}: {kind}, {race}, {result}"


def _draw(replay: Replay, args: argparse.Namespace) -> str:
    from sc2pool.cli import films  # noqa: PLC0415 - slow to import

    loops, most = replay.info.game_duration_loops, films.MOST_FRAMES
    if loops // args.every >= most:
        raise ConfigError(
            f"{args.replay} has {loops:,} loops, of which a picture shows at most {most:,}: "
            f"give --every {loops // most + 1} or more"
        )
    frames = [films.frame_of(frame) for frame in replay.frames(args.player, args.every)]
    try:
        films.write_picture(args.picture, frames, LOOPS_PER_S / args.every)
    except OSError as error:
        raise ConfigError(f"cannot write {args.picture}: {error.strerror or error}") from error
    return f"{args.picture}: {len(frames)} frames"
