"""Steps of a game that runs by itself."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager, closing
from dataclasses import replace

import pytest
from s2clientprotocol import sc2api_pb2 as sc_pb

from sc2pool.config import GameSetup, Limits
from sc2pool.deadline import Deadline
from sc2pool.game.game import Game, ResetKind
from sc2pool.game.program.installation import find_map
from sc2pool.protocol import requests
from sc2pool.protocol.game_time import LOOPS_PER_S
from sc2pool.protocol.replies import Status

pytestmark = pytest.mark.timing

SETUP = GameSetup("MoveToBeacon", realtime=True)
LIMITS = Limits(step_s=1.0)
NOOP = sc_pb.Action()
PERIOD_LOOPS = 4
LATE_LOOPS = 2
"""So far may a busy machine's answer lie behind the loop that was asked for."""


@pytest.fixture
def playing(game_installation) -> Callable[..., AbstractAsyncContextManager[Game]]:
    """`async with playing(limits) as game:` it is in its first episode, in real time."""

    @asynccontextmanager
    async def begin(limits: Limits = LIMITS) -> AsyncIterator[Game]:
        launching = Game.launch(game_installation, limits, deadline=Deadline.after(60))
        with closing(await launching) as game:
            path = find_map(game_installation, SETUP.map_name)
            assert await game.start_episode(SETUP, path, 1) is ResetKind.CREATE
            yield game

    return begin


async def test_each_step_ends_at_the_loop_that_is_due(playing):
    async with playing() as game:
        loop = (await game.observe()).game_loop
        began_s = time.monotonic()
        first = loop
        for _ in range(5):
            step = await game.step([NOOP], PERIOD_LOOPS)
            assert len(step.action_results) == 1
            assert PERIOD_LOOPS <= step.observed.game_loop - loop <= PERIOD_LOOPS + LATE_LOOPS
            loop = step.observed.game_loop
        assert time.monotonic() - began_s == pytest.approx((loop - first) / LOOPS_PER_S, abs=0.1)


async def test_late_step_is_answered_at_once_and_begins_the_next_period(playing):
    async with playing() as game:
        loop = (await game.observe()).game_loop
        await asyncio.sleep(3 * PERIOD_LOOPS / LOOPS_PER_S)
        began_s = time.monotonic()
        late = (await game.step([], PERIOD_LOOPS)).observed.game_loop
        assert time.monotonic() - began_s < 0.15
        assert late - loop >= 3 * PERIOD_LOOPS - 1
        following = (await game.step([], PERIOD_LOOPS)).observed.game_loop
        assert PERIOD_LOOPS <= following - late <= PERIOD_LOOPS + LATE_LOOPS


async def test_a_period_longer_than_the_limit_of_a_step_is_waited_for(playing):
    async with playing(replace(LIMITS, step_s=0.4)) as game:
        loop = (await game.observe()).game_loop
        assert (await game.step([], 20)).observed.game_loop - loop >= 20


async def test_events_of_current_loop_come_with_the_next_observation(playing):
    async with playing() as game:
        seen = await game.observe()
        (marine,) = [unit.tag for unit in seen.observation.raw_data.units if unit.owner == 1]
        unknown = sc_pb.Action()
        unknown.action_raw.unit_command.ability_id = 1
        unknown.action_raw.unit_command.unit_tags.append(marine)
        await game.request(requests.action([unknown]))
        kill = sc_pb.RequestDebug()
        kill.debug.add().kill_unit.tag.append(marine)
        await game.request(sc_pb.Request(debug=kill))
        await asyncio.sleep(2 / LOOPS_PER_S)
        assert await game.current_loop() > seen.game_loop
        assert game.status is Status.ENDED, "with its last unit"
        step = await game.step([NOOP], PERIOD_LOOPS)
        told = step.observed.response
        assert list(told.observation.raw_data.event.dead_units) == [marine]
        assert [error.unit_tag for error in told.action_errors] == [marine]
        assert [result.player_id for result in told.player_result] == [game.player_id]
        assert step.ended
        assert game.result == told.player_result[0].result


async def test_each_step_says_how_late_it_was(playing):
    async with playing() as game:
        await game.observe()
        assert game.tick is None
        await game.step([], PERIOD_LOOPS)
        assert game.tick is not None
        assert game.tick.lost_periods == game.tick.skipped_loops == 0
        await asyncio.sleep(3.5 * PERIOD_LOOPS / LOOPS_PER_S)
        await game.step([], PERIOD_LOOPS)
        assert game.tick.gap_s >= 3.5 * PERIOD_LOOPS / LOOPS_PER_S
        assert game.tick.lost_periods >= 3
        assert game.tick.skipped_loops >= 2 * PERIOD_LOOPS


async def test_slightly_late_step_shortens_the_next_period(playing):
    async with playing() as game:
        begun = (await game.observe()).game_loop
        await asyncio.sleep(1.5 * PERIOD_LOOPS / LOOPS_PER_S)
        late = (await game.step([], PERIOD_LOOPS)).observed.game_loop
        assert begun + PERIOD_LOOPS < late < begun + 2 * PERIOD_LOOPS
        following = (await game.step([], PERIOD_LOOPS)).observed.game_loop
        assert begun + 2 * PERIOD_LOOPS <= following <= begun + 2 * PERIOD_LOOPS + LATE_LOOPS
