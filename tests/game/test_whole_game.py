"""A game with rules, stepped and in real time: the stand-in, or `--game`'s installation.

Each test must pass on the stand-in and on the real game. Faults are requested through the API.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager, closing
from dataclasses import replace

import pytest
from s2clientprotocol import debug_pb2, raw_pb2
from s2clientprotocol import sc2api_pb2 as sc_pb

from sc2pool.config import GameSetup, Limits
from sc2pool.deadline import Deadline
from sc2pool.errors import FaultKind, GameFault
from sc2pool.game.game import Game, ResetKind
from sc2pool.game.program.installation import Installation, find_map
from sc2pool.protocol import LOOPS_PER_S, requests
from sc2pool.protocol.replies import FIRST_LOOP_MAX, Status
from sc2pool.tasks.minigames.geometry import PlayableArea
from tests.game.conftest import in_each_loop
from tests.support.systems import strike

SETUP = GameSetup("MoveToBeacon")
LIMITS = Limits(launch_s=90, create_join_s=60, reset_s=60, step_s=10)
FAULTY = replace(LIMITS, step_s=0.5)
"""The limits for games that do not answer; the first observation keeps the limit `reset_s`."""
Fault = debug_pb2.DebugTestProcess


async def launched(where: Installation, limits: Limits = LIMITS) -> Game:
    return await Game.launch(where, limits, deadline=Deadline.after(limits.launch_s))


def own_units(answer: sc_pb.ResponseObservation) -> list[raw_pb2.Unit]:
    return [u for u in answer.observation.raw_data.units if u.alliance == raw_pb2.Self]


async def test_a_map_outside_of_the_map_folder_is_played(game_installation, tmp_path):
    path = tmp_path / "Elsewhere.SC2Map"
    path.write_bytes(find_map(game_installation, SETUP.map_name).read_bytes())
    with closing(await launched(game_installation)) as game:
        await game.start_episode(SETUP, path, None)
        assert len(own_units(await game.observe())) == 1


@in_each_loop
async def test_life_of_a_game(game_installation):
    path = find_map(game_installation, SETUP.map_name)
    with closing(await launched(game_installation)) as game:
        assert game.base_build == game_installation.base_build
        assert game.version
        assert game.status is Status.LAUNCHED
        assert await game.start_episode(SETUP, path, None) is ResetKind.CREATE
        first = await game.observe()
        assert first.observation.game_loop <= FIRST_LOOP_MAX
        assert len(own_units(first)) == 1
        area = PlayableArea.of(await game.game_info())
        assert area.left < area.right
        assert len((await game.data()).units) > 0
        (marine,) = own_units(first)
        # Move to the centre of the farthest quarter of the map.
        middle_x, middle_y = area.centre
        move = sc_pb.Action()
        move.action_raw.unit_command.ability_id = 16  # move
        target = move.action_raw.unit_command.target_world_space_pos
        target.x = (middle_x + (area.right if marine.pos.x < middle_x else area.left)) / 2
        target.y = (middle_y + (area.top if marine.pos.y < middle_y else area.bottom)) / 2
        move.action_raw.unit_command.unit_tags.append(marine.tag)
        step = await game.step([move], 8)
        assert step.action_results == [1]
        assert step.observed.observation.game_loop == first.observation.game_loop + 8
        assert own_units(step.observed)[0].pos != marine.pos
        while not step.ended:
            step = await game.step([], 240)
        assert game.status is Status.ENDED
        assert game.result is not None
        assert await game.start_episode(SETUP, path, None) is ResetKind.RESTART
        assert (await game.observe()).observation.game_loop <= FIRST_LOOP_MAX
        assert not (await game.step([], 8)).ended


async def test_seed_decides(game_installation):
    setup = GameSetup("CollectMineralShards")
    path = find_map(game_installation, setup.map_name)
    seen = []
    with closing(await launched(game_installation)) as game:
        for seed in (1, 2, 1):
            assert await game.start_episode(setup, path, seed) is ResetKind.CREATE
            await game.observe()
            step = await game.step([], 8)
            seen.append(step.observed.observation.SerializeToString(deterministic=True))
    one, other, again = seen
    assert one == again
    assert one != other


async def test_missing_map(game_installation, tmp_path):
    refused = pytest.raises(GameFault, match="create_game")
    with closing(await launched(game_installation)) as game, refused:
        await game.start_episode(SETUP, tmp_path / "Nowhere.SC2Map", None)


@pytest.mark.parametrize(
    ("harm", "kinds"),
    [
        (Fault.hang, {FaultKind.DEADLINE}),
        # An error reporter may keep a crashed game's process.
        (Fault.crash, {FaultKind.GAME_EXITED, FaultKind.DEADLINE}),
        (Fault.exit, {FaultKind.GAME_EXITED}),
        ("KILL", {FaultKind.GAME_EXITED}),
        ("STOP", {FaultKind.DEADLINE}),
    ],
    ids=["hang", "crash", "exit", "KILL", "STOP"],
)
async def test_a_fault_during_play(game_installation, harm, kinds):
    path = find_map(game_installation, SETUP.map_name)
    with closing(await launched(game_installation, FAULTY)) as game:
        await game.start_episode(SETUP, path, None)
        await game.observe()
        with pytest.raises(GameFault) as raised:
            if isinstance(harm, str):
                strike(game.pid, harm)
            else:
                command = debug_pb2.DebugCommand(test_process=Fault(test=harm))
                await game.request(sc_pb.Request(debug=sc_pb.RequestDebug(debug=[command])))
            await game.step([], 8)
        assert raised.value.kind in kinds


REALTIME_SETUP = GameSetup("MoveToBeacon", realtime=True)
REALTIME_LIMITS = Limits(step_s=1.0)
NOOP = sc_pb.Action()
PERIOD_LOOPS = 4
LATE_LOOPS = 2
"""The allowed delay of an answer on a busy machine, in loops."""


@pytest.fixture
def playing(game_installation) -> Callable[..., AbstractAsyncContextManager[Game]]:
    """`async with playing(limits) as game:`: a game that plays its first episode, in real time."""

    @asynccontextmanager
    async def begin(limits: Limits = REALTIME_LIMITS) -> AsyncIterator[Game]:
        launching = Game.launch(game_installation, limits, deadline=Deadline.after(60))
        with closing(await launching) as game:
            path = find_map(game_installation, REALTIME_SETUP.map_name)
            assert await game.start_episode(REALTIME_SETUP, path, 1) is ResetKind.CREATE
            yield game

    return begin


@pytest.mark.timing
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


@pytest.mark.timing
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


@pytest.mark.timing
async def test_a_period_longer_than_the_limit_of_a_step_is_waited_for(playing):
    async with playing(replace(REALTIME_LIMITS, step_s=0.4)) as game:
        loop = (await game.observe()).game_loop
        assert (await game.step([], 20)).observed.game_loop - loop >= 20


@pytest.mark.timing
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


@pytest.mark.timing
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


@pytest.mark.timing
async def test_slightly_late_step_shortens_the_next_period(playing):
    async with playing() as game:
        begun = (await game.observe()).game_loop
        await asyncio.sleep(1.5 * PERIOD_LOOPS / LOOPS_PER_S)
        late = (await game.step([], PERIOD_LOOPS)).observed.game_loop
        assert begun + PERIOD_LOOPS < late < begun + 2 * PERIOD_LOOPS
        following = (await game.step([], PERIOD_LOOPS)).observed.game_loop
        assert begun + 2 * PERIOD_LOOPS <= following <= begun + 2 * PERIOD_LOOPS + LATE_LOOPS
