"""Whom SMAC's scripted player attacks and heals, and what that of a single agent does."""

from __future__ import annotations

import numpy as np
import pytest

from sc2pool.tasks.teams.smac.actions import available
from sc2pool.tasks.teams.smac.battle_task import smac_task
from sc2pool.tasks.teams.smac.features import Sizes, observations
from sc2pool.tasks.teams.smac.rules import Rules
from sc2pool.tasks.teams.smac.scripted import EAST, NORTH, SOUTH, WEST, Heuristic, choose, towards
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


RULES = pytest.mark.parametrize(
    "rules",
    [
        Rules(),
        Rules(obs_all_health=False, obs_own_health=False, obs_timestep_number=True),
        Rules(obs_last_action=True, obs_pathing_grid=True, obs_terrain_height=True),
    ],
    ids=["SMAC's own", "little", "much"],
)


def chosen(battle, ground, ahead: int = EAST) -> list[int]:
    """The action of each agent."""
    sizes = Sizes(battle.scenario, battle.rules)
    last = np.zeros((len(battle.allies.tags), sizes.n_actions), np.float32)
    masks = available(battle, ground)
    seen = observations(battle, ground, masks, last, 0.25)
    return [choose(one, sizes, ahead) for one in seen]


@RULES
def test_soldiers(begin, ground, rules):
    battle = begin(marines(3) + enemies(3), rules=rules)
    assert chosen(battle, ground) == [EAST] * 3
    assert chosen(battle, ground, NORTH) == [NORTH] * 3
    battle.enemies.positions[:] = [(9, 21.5), (14, 16), (2, 16.5)]
    battle.allies.positions[:] = [(9, 16), (9, 23), (10.5, 16)]
    assert chosen(battle, ground) == [7, 6, 7], "in range, and the nearest of those"
    battle.enemies.positions[:] = [(31, 16), (31, 17), (1, 16.5)]
    assert chosen(battle, ground) == [WEST, EAST, EAST], "a marine sees nine cells"


def test_the_dead_do_nothing(begin, ground, seen):
    battle = begin(marines(3) + enemies(3))
    battle.update(seen(marines(2) + enemies(3)))
    assert chosen(battle, ground) == [EAST, EAST, 0]


def test_the_dead_that_see_the_time_do_nothing_that_counts(begin, ground, seen):
    battle = begin(marines(3) + enemies(3), rules=Rules(obs_timestep_number=True))
    battle.update(seen(marines(2) + enemies(3)))
    masks = available(battle, ground)
    action = chosen(battle, ground)[2]
    assert action == 0 or not masks[2, action]


@RULES
def test_medivacs(begin, ground, rules):
    battle = begin(medivacs_battle(), "MMM", rules)
    battle.allies.health[4] = 20.0
    knows = rules.obs_all_health
    assert chosen(battle, ground)[9] == (6 + 4 if knows else 6)
    battle.allies.positions[9] = (16.5, 16)
    battle.allies.positions[:9] = (9, 16)
    assert chosen(battle, ground)[9] == WEST, "it follows the nearest"
    battle.allies.positions[9] = (30, 16)
    assert chosen(battle, ground)[9] == EAST


def test_a_medivac_without_anybody_hurt_stays_with_the_others(begin, ground):
    battle = begin(medivacs_battle(), "MMM")
    battle.allies.positions[9] = (9, 12)
    assert chosen(battle, ground)[9] == NORTH


def test_more_enemies_than_allies(begin, ground):
    own = [unit(i, 2057, 9, 15 + i) for i in range(1, 6)]
    battle = begin(own + enemies(6, x=12), "5m_vs_6m")
    assert all(action >= 6 for action in chosen(battle, ground))
