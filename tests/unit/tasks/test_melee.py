"""Tests `Melee`: every state must give an observation, and commands must be for own units."""

from __future__ import annotations

import numpy as np
import pytest
from s2clientprotocol import common_pb2, raw_pb2
from s2clientprotocol import sc2api_pb2 as sc_pb

from sc2pool import commands
from sc2pool.protocol.observed import Observed
from sc2pool.tasks import melee
from sc2pool.tasks.melee import Front, Home, Melee, MeleeImage, play_melee
from sc2pool.tasks.minigames.geometry import PlayableArea
from sc2pool.tasks.minigames.town import (
    BARRACKS,
    COMMAND_CENTER,
    GEYSER,
    MARINE,
    MINERAL_FIELD,
    SCV,
    SUPPLY_DEPOT,
)
from sc2pool.tasks.registry import resolve_task
from sc2pool.units import Kind
from tests.unit.conftest import grid_of

OWN, ENEMY, NEUTRAL = raw_pb2.Self, raw_pb2.Enemy, raw_pb2.Neutral
TASKS = (Melee, MeleeImage)
TYPES = (COMMAND_CENTER, SUPPLY_DEPOT, BARRACKS, SCV, MARINE)


def _random_units(unit, rng: np.random.Generator) -> list[raw_pb2.Unit]:
    kinds = [Kind(one, side) for one in TYPES for side in (OWN, ENEMY)]
    kinds.append(Kind(MINERAL_FIELD, NEUTRAL))
    return [
        unit(
            kind,
            *rng.uniform(-20, 80, 2).tolist(),
            tag=i * 40 + k + 1,
            radius=float(rng.choice([0.375, 2.0])),
            build_progress=float(rng.choice([0.5, 1.0])),
        )
        for i, kind in enumerate(kinds)
        for k in range(rng.choice([0, 1, 3, 30]))
    ]


@pytest.mark.parametrize("task_class", TASKS)
def test_observations_and_commands_of_random_states(task_class, unit, begin):
    rng = np.random.default_rng(7)
    for _ in range(40):
        units = _random_units(unit, rng)
        task = begin(task_class, *units, minerals=1000, food_cap=50)
        assert task.observation_space.contains(task.observe())
        own = {one.tag for one in units if one.alliance == OWN}
        masks = task.action_masks()
        for action in range(melee.N_ACTIONS):
            commands = list(task.act(action))
            assert masks[action] or not commands
            for command in commands:
                assert command.unit_tags
                assert set(command.unit_tags) <= own


@pytest.mark.parametrize("task_class", TASKS)
def test_nothing_on_the_map_and_no_area(task_class, begin):
    task = begin(task_class, within=PlayableArea(0, 0, 0, 0))
    assert task.observation_space.contains(task.observe())
    assert task.action_masks().tolist() == [True] + [False] * (melee.N_ACTIONS - 1)
    assert all(list(task.act(action)) == [] for action in range(melee.N_ACTIONS))


def test_observations_of_real_games(recorded):
    for info, response in recorded:
        task = Melee()
        task.game_info, task.observation = info, response.observation
        task.on_start()
        task.observe()
        assert len(task.town.all(MINERAL_FIELD)) == 8, info.map_name
        masks = task.action_masks()
        assert masks[melee.TRAIN_SCV]
        assert not masks[[melee.BUILD_DEPOT, melee.ATTACK]].any()
        assert task.front._starts, "where the opponent began"


@pytest.mark.parametrize("task_class", TASKS)
def test_definitions(task_class):
    assert resolve_task(task_class.__name__) is task_class
    (opponent,) = task_class.game_setup().opponents
    assert opponent.difficulty == sc_pb.VeryEasy


def test_the_reward_of_what_was_destroyed_and_of_the_result(begin):
    task = begin(Melee)
    assert task.reward() == 0
    seen = sc_pb.Observation()
    seen.player_common.player_id = 1
    seen.score.score_details.killed_value_units = 500
    task.observation = seen
    assert task.reward() == pytest.approx(0.05)
    assert task.reward() == 0
    for result, worth in ((sc_pb.Victory, 1), (sc_pb.Defeat, -1), (sc_pb.Tie, 0)):
        results = [
            sc_pb.PlayerResult(player_id=2, result=sc_pb.Victory),
            sc_pb.PlayerResult(player_id=1, result=result),
        ]
        reply = sc_pb.ResponseObservation(observation=seen, player_result=results)
        task.lazy_observation = Observed.of(reply)
        assert task.reward() == worth


def test_the_scripted_player_does_what_is_missing():
    nothing = np.zeros(melee.OBSERVATION_SIZE, dtype=np.float32)
    assert play_melee(nothing) == melee.WAIT

    def chosen(**values: float) -> int:
        observation = nothing.copy()
        places = {"minerals": 0, "free": 3, "workers": 4, "idle": 5, "depots": 7, "barracks": 9}
        places |= {"empty": 11, "marines": 12, "idle_marines": 13, "threats": 15}
        for name, value in values.items():
            observation[places[name]] = value
        return play_melee(observation)

    assert chosen(idle=0.1) == melee.GATHER_MINERALS
    assert chosen(minerals=0.1) == melee.BUILD_DEPOT
    assert chosen(minerals=0.1, free=0.5) == melee.TRAIN_SCV
    assert chosen(minerals=0.15, free=0.5, workers=0.4, depots=0.1) == melee.BUILD_BARRACKS
    assert chosen(minerals=0.05, free=0.9, workers=0.4, empty=0.1) == melee.TRAIN_MARINE
    assert chosen(marines=0.1, idle_marines=0.1, free=0.9) == melee.WAIT
    assert chosen(marines=0.2, idle_marines=0.1) == melee.ATTACK
    assert chosen(marines=0.1, idle_marines=0.1, threats=0.1) == melee.ATTACK


def _info(cliff_from_x: int) -> sc_pb.ResponseGameInfo:
    """A map of 64 x 64 cells; no structure can be placed in one column and all columns after it."""
    info = sc_pb.ResponseGameInfo()
    area = info.start_raw.playable_area
    area.p1.x = area.p1.y = 64
    cells = np.ones((64, 64), dtype=np.bool_)
    cells[:, cliff_from_x:] = False
    grid_of(info.start_raw.placement_grid, cells, 1)
    return info


def _home(state, unit, *more: raw_pb2.Unit, cliff_from_x: int = 64) -> Home:
    seen = state(
        unit(Kind(COMMAND_CENTER, OWN), 30.5, 30.5, tag=1, build_progress=1),
        unit(Kind(SCV, OWN), 34, 30, tag=2, build_progress=1),
        *more,
        minerals=500,
    )
    home = Home(_info(cliff_from_x), seen)
    home.update(seen)
    return home


def test_only_near_fields_of_any_type_belong_to_it(state, unit):
    home = _home(
        state,
        unit,
        unit(Kind(483, NEUTRAL), 24, 30.5, tag=3),
        unit(Kind(MINERAL_FIELD, NEUTRAL), 24, 32.5, tag=4),
        unit(Kind(MINERAL_FIELD, NEUTRAL), 50, 30.5, tag=5),
        unit(Kind(343, NEUTRAL), 30.5, 37.5, tag=6),
    )
    assert {field.tag for field in home.all(MINERAL_FIELD)} == {3, 4}
    assert [geyser.tag for geyser in home.all(GEYSER)] == [6]


def _place(home: Home, ability_id: int) -> tuple[float, float]:
    (first, *_) = home.build(ability_id)
    target = first.target_world_space_pos
    return target.x, target.y


def test_structures_stand_on_ground_and_leave_a_passage(state, unit):
    for cliff_from_x in (64, 33, 29):
        home = _home(state, unit, cliff_from_x=cliff_from_x)
        places = [_place(home, commands.BUILD_SUPPLY_DEPOT) for _ in range(4)]
        assert all(x + 1 <= cliff_from_x for x, _ in places)
        assert all(max(abs(x - 30.5), abs(y - 30.5)) >= 2.5 + 1 + 1 for x, y in places)
        apart = [
            max(abs(x - a), abs(y - b)) for i, (x, y) in enumerate(places) for a, b in places[:i]
        ]
        assert min(apart) >= 3


def test_no_ground_no_order(state, unit):
    home = _home(state, unit, cliff_from_x=0)
    assert list(home.build(commands.BUILD_SUPPLY_DEPOT)) == []
    assert home.coming(SUPPLY_DEPOT) == 0


OWN_MARINE, ENEMY_MARINE = Kind(MARINE, raw_pb2.Self), Kind(MARINE, raw_pb2.Enemy)
ENEMY_BARRACKS = Kind(BARRACKS, raw_pb2.Enemy)


@pytest.fixture
def front() -> Front:
    info = sc_pb.ResponseGameInfo()
    info.start_raw.start_locations.append(common_pb2.Point2D(x=30, y=30))
    grid_of(info.start_raw.pathing_grid, np.ones((32, 32), dtype=np.bool_), 1)
    return Front(info)


def _target(front: Front, seen: sc_pb.Observation) -> tuple[float, float]:
    front.update(seen)
    (command,) = front.attack()
    return command.target_world_space_pos.x, command.target_world_space_pos.y


def test_known_structures_come_before_units_and_these_before_the_start(front, unit, state):
    marine = unit(OWN_MARINE, 2, 2, tag=1)
    soldiers = [unit(ENEMY_MARINE, 9, 9, tag=2, radius=0.375)]
    barracks = [unit(ENEMY_BARRACKS, x, 20, tag=x, radius=1.8) for x in (25, 20)]
    assert _target(front, state(marine, *soldiers, *barracks)) == (20, 20)
    assert len(front.enemy_structures) == 2
    assert front.near((9, 10), 2) == 1
    assert _target(front, state(marine, *soldiers)) == (9, 9)
    assert _target(front, state(marine)) == (30, 30)


def test_dark_ground_is_looked_at_when_nothing_is_known(front, unit, state):
    seen = state(unit(OWN_MARINE, 2, 2, tag=1))
    shown = seen.raw_data.map_state.visibility
    cells = np.full((32, 32), 2)
    cells[30, 30] = 1
    grid_of(shown, cells, 8)
    assert _target(front, seen) == (30.5, 30.5)
    cells[10, 5] = cells[20, 20] = 0
    grid_of(shown, cells, 8)
    assert _target(front, seen) == (5.5, 10.5)
    grid_of(shown, np.full((32, 32), 2), 8)
    assert _target(front, seen) == (2, 2), "all is seen: there is nothing to look for"


def test_only_idle_marines_are_sent_but_all_come_home(front, unit, state):
    busy = unit(OWN_MARINE, 3, 3, tag=5)
    busy.orders.add(ability_id=23)
    front.update(state(unit(OWN_MARINE, 2, 2, tag=1), busy))
    assert [list(command.unit_tags) for command in front.attack()] == [[1]]
    assert [list(command.unit_tags) for command in front.defend((1, 1))] == [[1, 5]]
    front.update(state(busy))
    assert list(front.attack()) == []


def test_each_side_and_the_ground_have_their_planes(unit, begin):
    task = begin(
        MeleeImage,
        unit(Kind(COMMAND_CENTER, raw_pb2.Self), 22, 30, tag=1, radius=2.75, build_progress=1),
        unit(Kind(SCV, raw_pb2.Self), 12, 30, tag=2, radius=0.375, build_progress=1),
        unit(Kind(BARRACKS, raw_pb2.Enemy), 32, 38, tag=3, radius=1.8, build_progress=0.5),
        unit(Kind(MARINE, raw_pb2.Enemy), 22, 22, tag=4, radius=0.375, build_progress=1),
    )
    start = task.game_info.start_raw
    walkable = np.zeros((64, 64), dtype=np.bool_)
    walkable[:30, :22] = True  # cells below and to the left of the centre
    grid_of(start.terrain_height, np.full((64, 64), 200), 8)
    grid_of(start.pathing_grid, walkable, 1)
    task.on_start()
    scvs, town, barracks, marines, enemies, structures, ground, minerals, supply = task.observe()
    assert np.nonzero(scvs)[1].mean() < 16, "to the left"
    assert (town[32, 32], structures.max(), enemies.max()) == (255, 155, 255)
    assert np.nonzero(structures)[0].mean() < 24, "above"
    assert np.nonzero(enemies)[0].mean() > 40, "below"
    assert not any(plane.any() for plane in (barracks, marines, minerals, supply))
    assert ground[40, 10] == 200
    assert ground[10, 10] == ground[40, 50] == 0
