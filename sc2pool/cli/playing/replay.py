"""Draw a replay as an animated picture.

    python scripts/show_replay.py REPLAY.SC2Replay PICTURE.gif [--game auto|real|PATH]
        [--every 8] [--player 1]

One frame is drawn every so many game loops, and shown as long as these last in real time. The
replay must be of the game that plays it: a replay of the stand-in for the stand-in.
"""

from __future__ import annotations

import argparse
import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

from PIL import Image
from s2clientprotocol import sc2api_pb2 as sc_pb

from sc2pool.config import Limits
from sc2pool.deadline import Deadline
from sc2pool.errors import ConfigError
from sc2pool.game.game import Game
from sc2pool.game.installation import find
from sc2pool.protocol.game_time import LOOPS_PER_S
from sc2pool.protocol.replies import require
from sc2pool.protocol.status import Status
from sc2pool.render.frame import draw

LAST_FRAME_S = 2.0
"""How long the last frame is shown before the picture begins again."""


def main() -> None:
    parser = argument_parser()
    options = parser.parse_args()
    try:
        frames = asyncio.run(play(options))
    except (ConfigError, OSError) as error:
        parser.error(str(error))
    frame_ms = round(1000 * options.every / LOOPS_PER_S)
    durations_ms = [frame_ms] * (len(frames) - 1) + [round(1000 * LAST_FRAME_S)]
    first, *others = frames
    first.save(options.picture, save_all=True, append_images=others, duration=durations_ms, loop=0)
    print(f"{options.picture}: {len(frames)} frames")


def argument_parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("replay", type=Path)
    parser.add_argument("picture", type=Path, help="the GIF file that is written")
    parser.add_argument("--game", default="auto", help="auto, real, or an installation's path")
    parser.add_argument("--every", type=int, default=8, help="game loops between two frames")
    parser.add_argument("--player", type=int, default=1, help="whose view; 0 is the whole map")
    return parser


async def play(options: argparse.Namespace) -> list[Image.Image]:
    """All frames of the replay."""
    limits = Limits()
    content = options.replay.read_bytes()
    game = await Game.launch(find(options.game), limits, deadline=Deadline.after(limits.launch_s))
    try:
        reply = await game.request(
            sc_pb.Request(
                start_replay=sc_pb.RequestStartReplay(
                    replay_data=content,
                    observed_player_id=options.player,
                    options=sc_pb.InterfaceOptions(raw=True, score=True),
                )
            )
        )
        require(reply, "start_replay")
        return [frame async for frame in frames_of(game, options.every)]
    finally:
        game.close()


async def frames_of(game: Game, every_loops: int) -> AsyncIterator[Image.Image]:
    """A frame of the current loop, and one after each step until the replay is over."""
    info = await game.game_info()
    status = Status.IN_REPLAY
    while True:
        seen = await game.request(sc_pb.Request(observation=sc_pb.RequestObservation()))
        frame = Image.fromarray(draw(info, seen.observation.observation))
        yield frame.quantize(dither=Image.Dither.NONE)
        if status != Status.IN_REPLAY:
            return
        stepped = await game.request(sc_pb.Request(step=sc_pb.RequestStep(count=every_loops)))
        status = Status(stepped.status)


if __name__ == "__main__":
    main()
