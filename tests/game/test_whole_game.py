"""The same on a game with rules: the stand-in, or the installation that `--game` names.

Nothing here depends on which of them it is; faults are asked for through the API.
"""

from __future__ import annotations

import asyncio
from contextlib import closing
from dataclasses import replace

import pytest
from s2clientprotocol import debug_pb2, raw_pb2
from s2clientprotocol import sc2api_pb2 as sc_pb

from sc2pool.config import GameSetup, Limits
from sc2pool.deadline import Deadline
from sc2pool.errors import FaultKind, GameFault
from sc2pool.game.game import Game, ResetKind
from sc2pool.game.program.installation import Installation, find_map
from sc2pool.protocol.replies import FIRST_LOOP_MAX, Status
from sc2pool.tasks.minigames.geometry import PlayableArea
from tests.game.conftest import in_each_loop
from tests.support.systems import strike

SETUP = GameSetup("MoveToBeacon")
LIMITS = Limits(launch_s=90, create_join_s=60, reset_s=60, step_s=10)
FAULTY = replace(LIMITS, step_s=0.5)
"""For games that will not answer; the observation after a reset still has all its time."""
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
        # To the middle of the quarter of the map that is farthest away.
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


async def test_two_games_at_once(game_installation):
    games = await asyncio.gather(launched(game_installation), launched(game_installation))
    assert games[0].port != games[1].port
    for game in games:
        game.close()


@pytest.mark.parametrize(
    ("test", "kinds"),
    [
        (Fault.hang, {FaultKind.DEADLINE}),
        # An error reporter may keep a crashed game.
        (Fault.crash, {FaultKind.GAME_EXITED, FaultKind.DEADLINE}),
        (Fault.exit, {FaultKind.GAME_EXITED}),
    ],
    ids=["hang", "crash", "exit"],
)
async def test_faults_of_the_game_s_own(game_installation, test, kinds):
    path = find_map(game_installation, SETUP.map_name)
    with closing(await launched(game_installation, FAULTY)) as game:
        await game.start_episode(SETUP, path, None)
        await game.observe()
        command = debug_pb2.DebugCommand(test_process=Fault(test=test))
        request = sc_pb.Request(debug=sc_pb.RequestDebug(debug=[command]))
        with pytest.raises(GameFault) as raised:
            await game.request(request)
            await game.step([], 8)
        assert raised.value.kind in kinds


@pytest.mark.parametrize(
    ("harm", "kind"), [("KILL", FaultKind.GAME_EXITED), ("STOP", FaultKind.DEADLINE)]
)
async def test_harm_during_play(game_installation, harm, kind):
    path = find_map(game_installation, SETUP.map_name)
    with closing(await launched(game_installation, FAULTY)) as game:
        await game.start_episode(SETUP, path, None)
        await game.observe()
        strike(game.pid, harm)
        with pytest.raises(GameFault) as raised:
            await game.step([], 8)
        assert raised.value.kind is kind
