"""Whom SMAC's scripted player attacks and heals."""

from __future__ import annotations

import numpy as np
import pytest

from sc2pool.tasks.teams.smac.actions import available
from sc2pool.tasks.teams.smac.heuristic import EAST, NORTH, SOUTH, WEST, Heuristic, towards
from sc2pool.tasks.teams.smac.rules import Rules
from sc2pool.tasks.teams.smac.task import smac_task
from tests.unit.tasks.teams.smac.conftest import enemies, marines, medivacs_battle, unit

FREE = {"only_available": False}
RESTRICTED = {"only_available": True}


def test_each_attacks_the_nearest_until_it_is_dead(begin, ground, seen):
    battle = begin(marines(3) + enemies(3))
    player = Heuristic(battle)
    assert player.actions(available(battle, ground), **FREE) == [6, 7, 8]
    nearer = [unit(101, 48, 23, 16, enemy=True), unit(103, 48, 10, 16, enemy=True)]
    battle.update(seen([*marines(3), *nearer]))  # 102 is dead
    assert player.actions(available(battle, ground), **FREE) == [6, 8, 8], "a target is kept"


def test_the_dead_do_nothing_and_so_do_all_without_enemies(begin, ground, seen):
    battle = begin(marines(3) + enemies(3))
    player = Heuristic(battle)
    battle.update(seen(marines(2) + enemies(3)))
    assert player.actions(available(battle, ground), **FREE) == [6, 7, 0]
    battle.update(seen(marines(2)))
    assert player.actions(available(battle, ground), **FREE) == [0, 0, 0]


def test_with_available_actions_alone_it_walks_to_what_is_out_of_range(begin, ground):
    near = [unit(101, 48, 14, 16, enemy=True)]
    far = [unit(102, 48, 15.5, 16, enemy=True), unit(103, 48, 9, 30, enemy=True)]
    battle = begin(marines(3) + near + far)
    player = Heuristic(battle)
    assert player.actions(available(battle, ground), **RESTRICTED) == [6, 6, 6]
    battle.allies.positions[:] = [(9, 16), (2, 16), (9, 24)]
    battle.enemies.health[0] = 0
    assert player.actions(available(battle, ground), **RESTRICTED) == [EAST, EAST, 8]
    assert player.actions(available(battle, ground), **FREE) == [7, 7, 8]


@pytest.mark.parametrize(
    ("offset", "move"),
    [((2, 1), EAST), ((-2, 1), WEST), ((1, 2), NORTH), ((1, -2), SOUTH), ((2, 2), NORTH)],
)
def test_along_the_longer_axis(offset, move):
    assert towards(np.array(offset, np.float64)) == move


def test_a_medivac_heals_the_nearest_that_is_hurt(begin, ground):
    battle = begin(medivacs_battle(), "MMM")
    player = Heuristic(battle)
    assert player.actions(available(battle, ground), **FREE)[9] == 0, "nobody is hurt"
    for agent in (2, 5):
        battle.allies.health[agent] = 10.0
    assert player.actions(available(battle, ground), **FREE)[9] == 6 + 2
    battle.allies.health[2] = 50.0
    assert player.actions(available(battle, ground), **FREE)[9] == 6 + 5
    battle.allies.health[9] = 10.0
    battle.allies.health[5] = 0.0
    assert player.actions(available(battle, ground), **FREE)[9] == 0, "it heals no medivac"


@pytest.mark.parametrize("rest", [False, True])
def test_a_task_with_it_ignores_the_actions(begin, ground, rest):
    battle = begin(marines(3) + enemies(3))
    task = smac_task("3m", Rules(heuristic_ai=True, heuristic_rest=rest))()
    task.ground = ground
    task.begin(battle)
    task._masks = available(battle, ground)
    orders = task.act([1, 1, 1])
    if rest:
        assert [one.target_world_space_pos.x for one in orders] == [11.0] * 3
    else:
        assert [one.target_unit_tag for one in orders] == [101, 102, 103]
