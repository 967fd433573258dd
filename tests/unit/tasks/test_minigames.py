"""Tests the mini-games: common spaces and geometry, the tasks of marines, a scripted player."""

from __future__ import annotations

import itertools
import math
from dataclasses import replace

import numpy as np
import pytest
from gymnasium import spaces
from s2clientprotocol import common_pb2
from s2clientprotocol import sc2api_pb2 as sc_pb
from stable_baselines3.common.preprocessing import is_image_space, is_image_space_channels_first

from sc2pool import commands
from sc2pool.tasks.marine_duel import ENEMY_MARINES, MarineDuel
from sc2pool.tasks.minigames.collect_mineral_shards import (
    MINERAL_SHARDS,
    CollectMineralShards,
    preferences,
)
from sc2pool.tasks.minigames.defeat_roaches import (
    ENEMY_ROACHES,
    FIRST_WALK,
    FOCUS_NEAREST,
    FOCUS_WEAKEST,
    N_ACTIONS,
    RESCUE_HURT,
    DefeatRoaches,
)
from sc2pool.tasks.minigames.geometry import (
    DIRECTIONS,
    N_DIRECTIONS,
    PlayableArea,
    bearings,
    bits_of,
    bytes_of,
    nearest_direction,
    walk_target,
    walkable_of,
)
from sc2pool.tasks.minigames.move_to_beacon import (
    BEACONS,
    IMAGE_SIZE,
    OWN_MARINES,
    MoveToBeacon,
    MoveToBeaconImage,
    beacon_vector,
)
from sc2pool.tasks.minigames.scores import PUBLISHED
from sc2pool.tasks.minigames.scripted import (
    collect_mineral_shards,
    defeat_roaches,
    move_to_beacon,
)
from sc2pool.tasks.minigames.town_games import (
    BuildMarines,
    BuildMarinesImage,
    CollectMineralsAndGas,
    CollectMineralsAndGasImage,
)
from sc2pool.tasks.minigames.zerglings import (
    ENEMY_BANELINGS,
    ENEMY_ZERGLINGS,
    DefeatZerglingsAndBanelings,
    DefeatZerglingsAndBanelingsImage,
    FindAndDefeatZerglings,
    FindAndDefeatZerglingsImage,
)
from sc2pool.tasks.registry import resolve_task

# ---- every observation is in its space -----------------------------------------------------------


TASKS = [
    MoveToBeacon,
    MoveToBeaconImage,
    CollectMineralShards,
    DefeatRoaches,
    FindAndDefeatZerglings,
    FindAndDefeatZerglingsImage,
    DefeatZerglingsAndBanelings,
    DefeatZerglingsAndBanelingsImage,
    CollectMineralsAndGas,
    CollectMineralsAndGasImage,
    BuildMarines,
    BuildMarinesImage,
]
WITH_THE_DUEL = [*TASKS, MarineDuel]
KINDS = [
    *(OWN_MARINES, BEACONS, MINERAL_SHARDS),
    *(ENEMY_MARINES, ENEMY_ROACHES, ENEMY_ZERGLINGS, ENEMY_BANELINGS),
]
TOWNS = {"CollectMineralsAndGas", "BuildMarines"}
"""Maps whose tasks take long steps."""
LOOPS = {"FindAndDefeatZerglings": 2880, "CollectMineralsAndGas": 6720, "BuildMarines": 14400}
"""A dict from maps to the length of an episode in loops; on all other maps it is 1920."""


def random_units(unit, rng: np.random.Generator) -> list:
    """Units that are much stranger than those on the maps.

    There are too many units or none; some units are outside the playable area, and some have hit
    points beyond the maximum.
    """
    units = []
    for kind in KINDS:
        for _ in range(rng.choice([0, 1, 2, 3, 30])):
            x, y = rng.uniform(-20, 80, 2).tolist()
            # Some units stand on the same spot, so no direction leads from one to the other.
            if rng.random() < 0.3:
                x = y = 25.0
            hit_points, cooldown = float(rng.uniform(0, 200)), float(rng.choice([0, 9.5]))
            tag = len(units) + 1
            units.append(unit(kind, x, y, tag, health=hit_points, weapon_cooldown=cooldown))
    return [units[i] for i in rng.permutation(len(units))]


@pytest.mark.parametrize("task_class", WITH_THE_DUEL)
def test_observations_and_commands_of_random_states(task_class, unit, begin, area):
    rng = np.random.default_rng(7)
    action_space = task_class.action_space
    action_space.seed(7)
    for _ in range(60):
        units = random_units(unit, rng)
        task = begin(task_class, *units)
        observed = task.observe()
        assert task.observation_space.contains(observed)
        assert np.isfinite(observed).all()
        assert not np.shares_memory(observed, task.observe())
        own_tags = {unit.tag for unit in units if unit.alliance == OWN_MARINES.alliance}
        all_tags = {unit.tag for unit in units}
        for command in task.act(action_space.sample()):
            assert set(command.unit_tags) <= own_tags
            assert command.unit_tags
            if command.HasField("target_world_space_pos"):
                target = command.target_world_space_pos
                assert area.clamp(target.x, target.y) == pytest.approx((target.x, target.y))
            elif command.ability_id != commands.HOLD_POSITION:
                assert command.target_unit_tag in all_tags - own_tags


@pytest.mark.parametrize("task_class", WITH_THE_DUEL)
def test_nothing_on_the_map_and_no_area(task_class, begin):
    task = begin(task_class, within=PlayableArea(0, 0, 0, 0))
    assert task.observation_space.contains(task.observe())
    assert list(task.act(task_class.action_space.sample())) == []


@pytest.mark.parametrize("task_class", TASKS)
def test_definitions(task_class):
    assert resolve_task(task_class.__name__) is task_class
    assert task_class.step_mul == (32 if task_class.map_name in TOWNS else 8)
    assert task_class.max_loops == LOOPS.get(task_class.map_name, 1920)
    assert task_class.map_name in PUBLISHED
    assert isinstance(task_class.action_space, spaces.Discrete | spaces.MultiDiscrete)


def test_reward_is_the_change_of_the_score(begin):
    task = begin(MoveToBeacon)
    assert task.reward() == 0
    task.score_change = 3.0
    assert task.reward() == 3.0


# ---- geometry ------------------------------------------------------------------------------------


def test_directions_are_the_compass():
    east, north, west, south = (DIRECTIONS[k] for k in (0, 2, 4, 6))
    assert east == pytest.approx((1, 0))
    assert north == pytest.approx((0, 1))
    assert west == pytest.approx((-1, 0))
    assert south == pytest.approx((0, -1))
    assert all(math.hypot(*direction) == pytest.approx(1) for direction in DIRECTIONS)


@pytest.mark.parametrize("direction", range(N_DIRECTIONS))
@pytest.mark.parametrize("turn", [-0.3, 0.0, 0.3])
def test_nearest_direction_inverts_the_table(direction, turn):
    angle = math.atan2(*reversed(DIRECTIONS[direction])) + turn
    assert nearest_direction(math.cos(angle), math.sin(angle)) == direction


def test_nearest_direction_of_nothing_is_a_direction():
    assert nearest_direction(0.0, 0.0) == 0


def test_a_walk_in_the_open_goes_straight(area):
    x, y = area.centre
    for direction, (step_x, step_y) in enumerate(DIRECTIONS):
        target_x, target_y = walk_target(x, y, direction, area)
        assert nearest_direction(target_x - x, target_y - y) == direction
        # The target must be too far for one step: a marine walks 1.125 cells in 8 loops.
        assert math.hypot(target_x - x, target_y - y) > 2
        assert (target_x - x) * step_x + (target_y - y) * step_y > 2


def test_a_walk_never_leaves_the_area(area):
    beyond = [(area.left - 9, area.top + 9), (area.right + 9, area.bottom)]
    corners = itertools.product((area.left, area.right), (area.bottom, area.top))
    for (x, y), direction in itertools.product([*corners, *beyond], range(N_DIRECTIONS)):
        target_x, target_y = walk_target(x, y, direction, area)
        assert area.left <= target_x <= area.right
        assert area.bottom <= target_y <= area.top


def test_a_walk_against_a_wall_slides_along_it(area):
    north_east = 1
    x, y = walk_target(area.right, area.centre[1], north_east, area)
    assert x == area.right
    assert y > area.centre[1] + 1


def test_relative_position(area):
    assert area.relative(*area.centre) == (0, 0)
    assert area.relative(area.right, area.bottom) == pytest.approx((1, -20 / 24))
    assert area.relative(1e9, -1e9) == (1, -1)


def test_an_area_that_is_not_told_still_has_a_size():
    area = PlayableArea.of(sc_pb.ResponseGameInfo())
    assert area.longer_side == 1
    assert area.relative(3, -3) == (1, -1)


def test_bearings():
    targets = np.array([[4.0, 5.0], [1.0, 1.0], [1.0, 101.0]])
    result = bearings(1.0, 1.0, targets, 10.0)
    assert result.dtype == np.float32
    assert result[0] == pytest.approx([0.6, 0.8, 0.5])
    assert result[1].tolist() == [0, 0, 0], "a target that is reached has no direction"
    assert result[2].tolist() == [0, 1, 1], "distances are capped"
    assert bearings(0.0, 0.0, np.empty((0, 2)), 10.0).shape == (0, 3)


def test_the_areas_of_real_maps(recorded):
    for info, seen in recorded:
        area = PlayableArea.of(info)
        assert area.longer_side >= 100, info.map_name
        own = next(unit for unit in seen.observation.raw_data.units if unit.alliance == 1)
        assert area.clamp(own.pos.x, own.pos.y) == (own.pos.x, own.pos.y)


def test_bits_and_bytes():
    grid = common_pb2.ImageData(size=common_pb2.Size2DI(x=8, y=2), data=b"\x80\x01")
    assert bits_of(grid).tolist() == [[True] + [False] * 7, [False] * 7 + [True]]
    grid = common_pb2.ImageData(size=common_pb2.Size2DI(x=2, y=2), data=b"\x01\x02\x03\x04\x05")
    assert bytes_of(grid).tolist() == [[1, 2], [3, 4]]
    grid = common_pb2.ImageData(size=common_pb2.Size2DI(x=4, y=2), data=b"\xff")
    assert bytes_of(grid).tolist() == [[255, 0, 0, 0], [0] * 4], "missing bytes are zero"


def test_older_versions_have_bytes_from_the_top_and_tell_where_units_cannot_walk():
    size = common_pb2.Size2DI(x=2, y=2)
    grid = common_pb2.ImageData(size=size, bits_per_pixel=8, data=b"\xff\x00\x00\x00")
    assert bits_of(grid).tolist() == [[False, False], [True, False]]
    assert walkable_of(grid).tolist() == [[True, True], [False, True]]
    grid = common_pb2.ImageData(size=size, bits_per_pixel=1, data=b"\x80")
    assert walkable_of(grid).tolist() == bits_of(grid).tolist() == [[True, False], [False, False]]


@pytest.mark.parametrize(("x", "y", "shape"), [(0, 0, (0, 0)), (-4, 2, (2, 0)), (4, -2, (0, 4))])
def test_a_grid_without_a_size_is_empty(x, y, shape):
    grid = common_pb2.ImageData(size=common_pb2.Size2DI(x=x, y=y), data=b"\xff")
    assert bytes_of(grid).shape == bits_of(grid).shape == shape


# ---- MoveToBeacon --------------------------------------------------------------------------------


def test_vector_of_move_to_beacon(unit, begin):
    task = begin(MoveToBeacon, unit(OWN_MARINES, 22, 30), unit(BEACONS, 28, 38))
    assert task.observe() == pytest.approx([0.6, 0.8, 10 / 24, 0, 0])


def test_vector_without_marine_or_beacon(unit, begin):
    assert begin(MoveToBeacon, unit(BEACONS, 28, 38)).observe().tolist() == [0] * 5
    lonely = begin(MoveToBeacon, unit(OWN_MARINES, 34, 30)).observe()
    assert lonely.tolist() == [0, 0, 0, 1, 0]


def test_vector_on_the_beacon(area):
    here = np.array([[12.0, 21.0]])
    assert beacon_vector(here, here, area)[:3].tolist() == [0, 0, 0]


@pytest.mark.parametrize("action", range(N_DIRECTIONS))
def test_action_walks_in_its_direction(action, unit, begin):
    task = begin(MoveToBeacon, unit(OWN_MARINES, 22, 30, tag=77))
    task.observe()
    (order,) = task.act(np.int64(action))
    target = order.target_world_space_pos
    assert order.ability_id == commands.MOVE
    assert list(order.unit_tags) == [77]
    assert not order.queue_command
    assert nearest_direction(target.x - 22, target.y - 30) == action


def test_script_walks_towards_the_beacon(unit, begin):
    task = begin(MoveToBeacon, unit(OWN_MARINES, 30, 30), unit(BEACONS, 20, 39))
    assert move_to_beacon(task.observe()) == 3


def test_image_shows_the_beacon_from_the_marine(unit, begin):
    # The area is 24 cells wide; 64 pixels show 48 cells, so a pixel is 3/4 of a cell.
    task = begin(MoveToBeaconImage, unit(OWN_MARINES, 30, 22), unit(BEACONS, 15, 37))
    rows, columns = np.nonzero(task.observe()[0])
    assert columns.mean() == pytest.approx(31.5 - 15 / 0.75, abs=0.3)
    assert rows.mean() == pytest.approx(31.5 - 15 / 0.75, abs=0.3)
    assert len(rows) == pytest.approx(np.pi * (2.5 / 0.75) ** 2, rel=0.1)


def test_image_shows_the_whole_area_from_its_corner(unit, begin, area):
    task = begin(MoveToBeaconImage, unit(OWN_MARINES, area.left, area.bottom))
    plane = task.observe()[1]
    rows, columns = np.nonzero(plane)
    assert columns.min() == rows.max() + 1 == IMAGE_SIZE // 2
    assert columns.max() == IMAGE_SIZE - 1
    assert len(rows) == pytest.approx(24 * 20 / 0.75**2, rel=0.05)


def test_image_without_a_marine_is_black(unit, begin):
    assert not begin(MoveToBeaconImage, unit(BEACONS, 20, 30)).observe().any()


def test_a_beacon_is_always_visible(unit, begin, area):
    huge = replace(area, right=area.left + 250, top=area.bottom + 250)
    corners = [huge.left, huge.bottom], [huge.right, huge.top]
    for x, y in np.random.default_rng(3).uniform(*corners, (50, 2)).tolist():
        units = unit(OWN_MARINES, *corners[0], tag=1), unit(BEACONS, x, y, tag=2)
        assert begin(MoveToBeaconImage, *units, within=huge).observe()[0].any()


def test_image_fits_convolutional_policies():
    space = MoveToBeaconImage.observation_space
    assert is_image_space(space)
    assert is_image_space_channels_first(space)
    assert min(space.shape[1:]) >= 36, "NatureCNN takes nothing smaller"


def test_image_and_vector_take_the_same_actions():
    assert MoveToBeaconImage.action_space == MoveToBeacon.action_space
    assert MoveToBeaconImage.act is MoveToBeacon.act


# ---- CollectMineralShards ------------------------------------------------------------------------


def test_preferences_leave_the_other_its_own():
    marines = np.array([[0.0, 0.0], [4.0, 0.0]])
    shards = np.array([[3.0, 0.0], [-5.0, 0.0], [-6.0, 0.0], [1.0, 0.0]])
    # Marine 1 is nearer to shard 0, so shard 0 is marine 0's last choice, after farther shards.
    assert preferences(marines, shards).tolist() == [[3, 1, 2, 0], [0, 3, 1, 2]]


def test_preferences_of_one_marine_go_by_distance():
    shards = np.array([[9.0, 0.0], [4.0, 0.0], [1.0, 0.0]])
    assert preferences(np.zeros((1, 2)), shards).tolist() == [[2, 1, 0]]


def test_vector_of_collect_mineral_shards(unit, begin):
    task = begin(
        CollectMineralShards,
        unit(OWN_MARINES, 10, 30, tag=1),
        unit(OWN_MARINES, 34, 30, tag=2),
        unit(MINERAL_SHARDS, 10, 36, tag=3),
        unit(MINERAL_SHARDS, 31, 26, tag=4),
    )
    first, second = task.observe().reshape(2, 11)
    assert first[:5] == pytest.approx([-1, 0, 0, 1, 6 / 24]), "its own shard first"
    assert first[7] == pytest.approx(np.hypot(21, 4) / 24), "then the other's"
    assert first[8:].tolist() == [0, 0, 1], "no third one"
    assert second[:5] == pytest.approx([1, 0, -0.6, -0.8, 5 / 24])


def test_vector_of_a_missing_marine(unit, begin):
    task = begin(CollectMineralShards, unit(OWN_MARINES, 10, 30), unit(MINERAL_SHARDS, 10, 31))
    first, second = task.observe().reshape(2, 11)
    assert first[4] < 1
    assert second.tolist() == [0, 0] + [0, 0, 1] * 3


def test_actions_move_one_marine_each(unit, begin):
    task = begin(
        CollectMineralShards, unit(OWN_MARINES, 20, 30, tag=9), unit(OWN_MARINES, 24, 30, tag=5)
    )
    task.observe()
    orders = list(task.act(np.array([2, 4])))
    assert [list(order.unit_tags) for order in orders] == [[5], [9]]
    places = [(24, 30), (20, 30)]
    targets = [order.target_world_space_pos for order in orders]
    assert [
        nearest_direction(target.x - x, target.y - y)
        for target, (x, y) in zip(targets, places, strict=True)
    ] == [2, 4]


def test_script_sends_each_to_its_own(unit, begin):
    task = begin(
        CollectMineralShards,
        unit(OWN_MARINES, 12, 30, tag=1),
        unit(OWN_MARINES, 32, 30, tag=2),
        unit(MINERAL_SHARDS, 12, 22, tag=3),
        unit(MINERAL_SHARDS, 28, 30, tag=4),
    )
    assert collect_mineral_shards(task.observe()).tolist() == [6, 4]


# ---- DefeatRoaches -------------------------------------------------------------------------------


@pytest.fixture
def fight(unit, begin):
    """Builds a fight of three marines against three enemies; a roach's hit would kill marine 2."""

    def build(task_class, enemies):
        return begin(
            task_class,
            unit(OWN_MARINES, 20, 29, tag=1, health=45, weapon_cooldown=0),
            unit(OWN_MARINES, 20, 30, tag=2, health=16, weapon_cooldown=4),
            unit(OWN_MARINES, 20, 31, tag=3, health=29, weapon_cooldown=0),
            unit(enemies, 24, 30, tag=11, health=145),
            unit(enemies, 26, 30, tag=12, health=29),
            unit(enemies, 25, 30, tag=13, health=29),
        )

    return build


@pytest.fixture
def battle(fight):
    return fight(DefeatRoaches, ENEMY_ROACHES)


def test_vector_of_defeat_roaches(battle):
    vector = battle.observe()
    assert vector[:2] == pytest.approx([3 / 20, 3 / 8])
    assert vector[2:4] == pytest.approx([-2 / 12, 0])
    assert vector[4:7] == pytest.approx([30 / 45, 16 / 45, 2 / 3])
    assert vector[7:9] == pytest.approx([0.4, 0.4])
    assert vector[9:13] == pytest.approx([1, 0, 4 / 24, 1])
    assert vector[13:17] == pytest.approx([1, 0, 5 / 24, 0.2])
    assert vector[21:].tolist() == [0, 0, 0, 0], "there is no fourth roach"


@pytest.mark.parametrize(
    ("task_class", "enemies"),
    [(DefeatRoaches, ENEMY_ROACHES), (MarineDuel, ENEMY_MARINES)],
)
def test_focus(fight, task_class, enemies):
    task = fight(task_class, enemies)
    task.observe()
    for action, target in ((FOCUS_NEAREST, 11), (FOCUS_WEAKEST, 13)):
        (order,) = task.act(action)
        assert order.ability_id == commands.ATTACK
        assert list(order.unit_tags) == [1, 2, 3]
        assert order.target_unit_tag == target


def test_rescue_takes_only_the_hurt_away(battle):
    battle.observe()
    flight, attack = battle.act(RESCUE_HURT)
    assert list(flight.unit_tags) == [2]
    assert flight.ability_id == commands.MOVE
    assert flight.target_world_space_pos.x < 20
    assert list(attack.unit_tags) == [1, 3]
    assert attack.target_unit_tag == 13


def test_walk_keeps_the_formation(battle):
    battle.observe()
    orders = list(battle.act(FIRST_WALK + 4))
    assert [list(order.unit_tags) for order in orders] == [[1], [2], [3]]
    targets = [(order.target_world_space_pos.x, order.target_world_space_pos.y) for order in orders]
    assert targets == [pytest.approx((16, y)) for y in (29, 30, 31)]


def test_masks(battle, unit, begin):
    battle.observe()
    assert battle.action_masks().tolist() == [True] * N_ACTIONS
    alone = begin(DefeatRoaches, unit(OWN_MARINES, 20, 30))
    alone.observe()
    assert alone.action_masks().tolist() == [False] * FIRST_WALK + [True] * 8
    assert list(alone.act(FOCUS_NEAREST)) == []


def test_script_rescues_only_in_danger(battle, unit, begin):
    assert defeat_roaches(battle.observe()) == RESCUE_HURT
    out_of_reach = begin(
        DefeatRoaches,
        unit(OWN_MARINES, 20, 30, tag=1, health=13),
        unit(ENEMY_ROACHES, 25.5, 30, tag=2, health=145),
    )
    assert defeat_roaches(out_of_reach.observe()) == FOCUS_WEAKEST
    unhurt = begin(
        DefeatRoaches,
        unit(OWN_MARINES, 20, 30, tag=1, health=29),
        unit(ENEMY_ROACHES, 23, 30, tag=2, health=145),
    )
    assert defeat_roaches(unhurt.observe()) == FOCUS_WEAKEST
