"""What the scripted player of a single agent does, from the vector that it sees."""

from __future__ import annotations

import numpy as np
import pytest

from sc2pool.tasks.teams.smac.actions import available
from sc2pool.tasks.teams.smac.features import Sizes, observations
from sc2pool.tasks.teams.smac.heuristic import EAST, NORTH, WEST
from sc2pool.tasks.teams.smac.rules import Rules
from sc2pool.tasks.teams.smac.scripted import choose
from tests.unit.tasks.teams.smac.conftest import enemies, marines, medivacs_battle, unit

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
