"""Probes of a game in real time: its pace, an awaited loop, and a stop in its midst.

Rules: a game is never stopped while a request is in flight, for it could not answer; a game that
was stopped goes on, whatever happens.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from typing import Final, NamedTuple

import psutil

from sc2pool.cli.doctor.asking import observe
from sc2pool.cli.doctor.measurements import AwaitedLoop, Pace, Pause
from sc2pool.cli.doctor.notes import Notes
from sc2pool.cli.doctor.place import Playable
from sc2pool.cli.doctor.verdict import Unknown
from sc2pool.deadline import Deadline
from sc2pool.errors import FaultKind, GameFault
from sc2pool.game.game import Game

AWAITED_LOOPS: Final = 20
STOPS_WITHIN_S: Final = 2.0


class Moment(NamedTuple):
    """A game loop and when it was seen."""

    loop: int
    at_s: float


async def probe(game: Game, playable: Playable, watch_s: float, notes: Notes) -> None:
    """Begins an episode in real time and watches it."""
    setup, map_path = playable
    with notes.trying("real time"):
        await game.start_episode(replace(setup, realtime=True), map_path, None)
        begin = await look(game)
        await asyncio.sleep(watch_s)
        end = await look(game)
        pace = Pace(end.loop - begin.loop, end.at_s - begin.at_s)
        notes.put("real time", pace)
    with notes.trying("awaited loop"):
        now = await look(game)
        asked = now.loop + AWAITED_LOOPS
        got = await look(game, asked)
        notes.put("awaited loop", AwaitedLoop(now.loop, asked, got.loop, got.at_s - now.at_s))
    if pace.loops <= 0:
        notes.put("stop and go on", Unknown("the game does not move by itself"))
        return
    with notes.trying("stop and go on"):
        notes.put("stop and go on", await stop_and_go_on(game, watch_s, pace.loops_per_s))


async def stop_and_go_on(game: Game, stop_s: float, loops_per_s: float) -> Pause:
    """Stops the game for a while, lets it go on, and sees which loop it is at."""
    before = await look(game)
    with stopped(game.pid) as process:
        stopped_at_s = time.monotonic()
        await until_stopped(process)
        await asyncio.sleep(stop_s)
    stopped_s = time.monotonic() - stopped_at_s
    at_once = await look(game)
    await asyncio.sleep(stop_s)
    after = await look(game)
    return Pause(
        loop_before=before.loop,
        loop_at_once=at_once.loop,
        loop_after=after.loop,
        stopped_s=stopped_s,
        ran_s=after.at_s - before.at_s - stopped_s,
        loops_per_s=loops_per_s,
    )


async def look(game: Game, game_loop: int | None = None) -> Moment:
    """The game's loop now, or once it has come to `game_loop`."""
    answer = await observe(game, game_loop)
    return Moment(answer.observation.game_loop, time.monotonic())


async def until_stopped(process: psutil.Process) -> None:
    """Waits until the system says so, which takes it some milliseconds at most."""
    deadline = Deadline.after(STOPS_WITHIN_S)
    while process.status() != psutil.STATUS_STOPPED:
        if deadline.expired():
            raise GameFault(FaultKind.HUNG, f"the game cannot be stopped: it is {process.status()}")
        await asyncio.sleep(0.001)


@contextmanager
def stopped(pid: int) -> Iterator[psutil.Process]:
    """In the block the process, which it gives, and its children are stopped."""
    process = psutil.Process(pid)
    family = [process, *process.children(recursive=True)]
    try:
        for each in family:
            each.suspend()
        yield process
    finally:
        for each in family:
            with suppress(psutil.Error):
                each.resume()
