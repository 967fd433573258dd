"""The examination of a running game: two launches, all probes, and an end in bounded time.

The first game is stepped, and asked to exit at last; the second one, whose launch finds all files
cached, plays in real time and is killed.

Rules: every game that is launched is closed, whatever happens; a failure ends what depends on it
and no more.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

import psutil

from sc2pool.cli.doctor import realtime, stepping
from sc2pool.cli.doctor.measurements import Durations, Kill, Markers, Version, YesNo
from sc2pool.cli.doctor.notes import Notes, ProbeFailed
from sc2pool.cli.doctor.place import Playable
from sc2pool.config import Limits
from sc2pool.deadline import Deadline
from sc2pool.game.game import Game
from sc2pool.game.installation import Installation
from sc2pool.protocol import requests

READY_MARKERS = ("Listening on:", "Startup Phase 3 complete. Ready for commands.")
LAUNCH = "launch"
FIRST_LAUNCH_FACTOR = 2
"""A first launch may take this many times the limit, as in a pool."""


@dataclass(frozen=True)
class Plan:
    """How much is done."""

    resets: int = 50
    steps: int = 100
    """Of each of the runs that are compared."""
    watch_s: float = 2.0
    """How long the game is watched in real time, and how long it is stopped."""
    timeout_s: float = 600.0
    """For all of it."""
    limits: Limits = field(default_factory=Limits)


QUICK = Plan(resets=10, steps=40, watch_s=1.0)


async def examine(
    installation: Installation, playable: Playable | None, plan: Plan, notes: Notes
) -> str:
    """Launches games and notes what they do.

    Args:
        installation: what to launch.
        playable: what to play; without it the game is launched and greeted only.
        plan: how much is done.
        notes: where to note it.

    Returns:
        Why what was not measured could not be.
    """
    reasons = []
    try:
        async with asyncio.timeout(plan.timeout_s):
            for part in (examine_stepped, examine_realtime):
                try:
                    await part(installation, playable, plan, notes)
                except ProbeFailed as failed:
                    reasons.append(f"what it needs failed: see {str(failed)!r}")
                    if str(failed) == LAUNCH:
                        break  # the same would happen again
    except TimeoutError:
        notes.ran_out_of_time(plan.timeout_s)
        reasons.append("the time was up (--timeout)")
    return reasons[0] if reasons else "no map to play was found"


async def examine_stepped(
    installation: Installation, playable: Playable | None, plan: Plan, notes: Notes
) -> None:
    """The first game: greeted, stepped, restarted, asked to exit."""
    async with launched(installation, plan, notes, LAUNCH) as game:
        notes.put("version", Version(game.version, game.base_build, installation.base_build))
        notes.put("proven listener", YesNo(game.listener_proven))
        log = game.log_tail(lines=1000)
        printed = tuple(marker for marker in READY_MARKERS if marker in log)
        missing = tuple(marker for marker in READY_MARKERS if marker not in log)
        notes.put("ready markers", Markers(printed, missing))
        with notes.trying("reply ids"):
            reply = await game.request(requests.ping())
            notes.put("reply ids", YesNo(reply.HasField("id")))
        if playable is not None:
            await stepping.probe(game, playable, plan.steps, plan.resets, notes)


async def examine_realtime(
    installation: Installation, playable: Playable | None, plan: Plan, notes: Notes
) -> None:
    """The second game: launched again, played in real time, killed."""
    async with launched(installation, plan, notes, "launch again") as game:
        try:
            if playable is not None:
                await realtime.probe(game, playable, plan.watch_s, notes)
        finally:
            begun_s = time.monotonic()
            game.close()
            took_s = time.monotonic() - begun_s
            notes.put("kill", Kill(took_s, gone=not psutil.pid_exists(game.pid)))


@asynccontextmanager
async def launched(
    installation: Installation, plan: Plan, notes: Notes, name: str
) -> AsyncIterator[Game]:
    """Launches a game, notes how long that took under `name`, and closes it after the block."""
    begun_s = time.monotonic()
    with notes.trying(name):
        # Its own deadline tells more than the one for everything, so it comes first.
        limit_s = min(plan.limits.launch_s * FIRST_LAUNCH_FACTOR, 0.9 * plan.timeout_s)
        deadline = Deadline.after(limit_s)
        game = await Game.launch(installation, plan.limits, deadline=deadline)
        notes.put(name, Durations.of([time.monotonic() - begun_s]))
    try:
        yield game
    finally:
        game.close()
