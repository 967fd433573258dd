"""`sc2pool replay`: a replay becomes an animated picture.

The replay must be of the game that plays it: a replay of the stand-in for the stand-in.
"""

from __future__ import annotations

import argparse
from collections.abc import AsyncIterator

from PIL import Image
from s2clientprotocol import sc2api_pb2 as sc_pb

from sc2pool.cli.playing.picture import frame_of, write_picture
from sc2pool.config import Limits
from sc2pool.deadline import Deadline
from sc2pool.errors import ConfigError
from sc2pool.game.game import Game
from sc2pool.game.installation import find
from sc2pool.protocol.replies import require
from sc2pool.protocol.status import Status
from sc2pool.render.frame import draw
from sc2pool.waiting import run_in_selector_loop


def run(args: argparse.Namespace) -> int:
    """Draw what the arguments say."""
    try:
        content = args.replay.read_bytes()
    except OSError as error:
        raise ConfigError(f"{args.replay}: {error.strerror}") from error
    frames = run_in_selector_loop(_play(content, args))
    write_picture(args.picture, frames, args.every)
    print(f"{args.picture}: {len(frames)} frames")
    return 0


async def _play(content: bytes, args: argparse.Namespace) -> list[Image.Image]:
    """All frames of the replay."""
    limits = Limits()
    game = await Game.launch(find(args.game), limits, deadline=Deadline.after(limits.launch_s))
    try:
        reply = await game.request(
            sc_pb.Request(
                start_replay=sc_pb.RequestStartReplay(
                    replay_data=content,
                    observed_player_id=args.player,
                    options=sc_pb.InterfaceOptions(raw=True, score=True),
                )
            )
        )
        require(reply, "start_replay")
        return [frame async for frame in _frames_of(game, args.every)]
    finally:
        game.close()


async def _frames_of(game: Game, every_loops: int) -> AsyncIterator[Image.Image]:
    """A frame of the current loop, and one after each step until the replay is over."""
    info = await game.game_info()
    status = Status.IN_REPLAY
    while True:
        seen = await game.request(sc_pb.Request(observation=sc_pb.RequestObservation()))
        yield frame_of(draw(info, seen.observation.observation))
        if status != Status.IN_REPLAY:
            return
        stepped = await game.request(sc_pb.Request(step=sc_pb.RequestStep(count=every_loops)))
        status = Status(stepped.status)
