"""Whatever the game shows, every mini-game task observes an element of its space.

The states here are random, and far worse than what the maps have: too many units or none, units
outside the playable area, hit points beyond the maximum.
"""

from __future__ import annotations

import numpy as np
import pytest
from gymnasium import spaces

from sc2pool.tasks.minigames.collect_mineral_shards import MINERAL_SHARDS, CollectMineralShards
from sc2pool.tasks.minigames.defeat_roaches import ENEMY_ROACHES, DefeatRoaches
from sc2pool.tasks.minigames.geometry import PlayableArea
from sc2pool.tasks.minigames.move_to_beacon import (
    BEACONS,
    OWN_MARINES,
    MoveToBeacon,
    MoveToBeaconImage,
)
from sc2pool.tasks.minigames.scores import PUBLISHED
from sc2pool.tasks.minigames.towns.build_marines import BuildMarines
from sc2pool.tasks.minigames.towns.collect_minerals_and_gas import CollectMineralsAndGas
from sc2pool.tasks.minigames.towns.images import BuildMarinesImage, CollectMineralsAndGasImage
from sc2pool.tasks.minigames.zerglings.defeat_zerglings_and_banelings import (
    ENEMY_BANELINGS,
    ENEMY_ZERGLINGS,
    DefeatZerglingsAndBanelings,
)
from sc2pool.tasks.minigames.zerglings.find_and_defeat_zerglings import FindAndDefeatZerglings
from sc2pool.tasks.minigames.zerglings.images import (
    DefeatZerglingsAndBanelingsImage,
    FindAndDefeatZerglingsImage,
)
from sc2pool.tasks.registry import resolve

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
KINDS = [OWN_MARINES, ENEMY_ROACHES, BEACONS, MINERAL_SHARDS, ENEMY_ZERGLINGS, ENEMY_BANELINGS]
TOWNS = {"CollectMineralsAndGas", "BuildMarines"}
"""Maps whose tasks take long steps."""
LOOPS = {"FindAndDefeatZerglings": 2880, "CollectMineralsAndGas": 6720, "BuildMarines": 14400}
"""Length of an episode, by map; 1920 on the others."""


def random_units(unit, rng: np.random.Generator) -> list:
    units = []
    for kind in KINDS:
        for _ in range(rng.choice([0, 1, 2, 3, 30])):
            x, y = rng.uniform(-20, 80, 2).tolist()
            # Some units stand on one spot: directions between them do not exist.
            if rng.random() < 0.3:
                x = y = 25.0
            hit_points, cooldown = float(rng.uniform(0, 200)), float(rng.choice([0, 9.5]))
            tag = len(units) + 1
            units.append(unit(kind, x, y, tag, health=hit_points, weapon_cooldown=cooldown))
    return [units[i] for i in rng.permutation(len(units))]


@pytest.mark.parametrize("task_class", TASKS)
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
        own_tags = {unit.tag for unit in units if unit.alliance == OWN_MARINES.alliance}
        all_tags = {unit.tag for unit in units}
        for command in task.act(action_space.sample()):
            assert set(command.unit_tags) <= own_tags
            assert command.unit_tags
            if command.HasField("target_world_space_pos"):
                target = command.target_world_space_pos
                assert area.clamp(target.x, target.y) == pytest.approx((target.x, target.y))
            else:
                assert command.target_unit_tag in all_tags - own_tags


@pytest.mark.parametrize("task_class", TASKS)
def test_nothing_on_the_map_and_no_area(task_class, begin):
    task = begin(task_class, within=PlayableArea(0, 0, 0, 0))
    assert task.observation_space.contains(task.observe())
    assert list(task.act(task_class.action_space.sample())) == []


@pytest.mark.parametrize("task_class", TASKS)
def test_two_observations_share_no_memory(task_class, unit, begin):
    task = begin(task_class, unit(OWN_MARINES, 20, 30))
    assert not np.shares_memory(task.observe(), task.observe())


@pytest.mark.parametrize("task_class", TASKS)
def test_definitions(task_class):
    assert resolve(task_class.__name__) is task_class
    assert task_class.step_mul == (32 if task_class.map_name in TOWNS else 8)
    assert task_class.max_loops == LOOPS.get(task_class.map_name, 1920)
    assert task_class.map_name in PUBLISHED
    assert isinstance(task_class.action_space, spaces.Discrete | spaces.MultiDiscrete)


def test_reward_is_the_change_of_the_score(begin):
    task = begin(MoveToBeacon)
    assert task.reward() == 0
    task.score_change = 3.0
    assert task.reward() == 3.0
