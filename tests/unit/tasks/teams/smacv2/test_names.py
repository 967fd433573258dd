"""Each number of an observation and of the state has a name."""

from __future__ import annotations

import pytest

from sc2pool.tasks.teams.smac.features import Sizes
from sc2pool.tasks.teams.smac.rules import Rules
from sc2pool.tasks.teams.smac.task import smac_task
from sc2pool.tasks.teams.smacv2.names import observation_names, state_names
from sc2pool.tasks.teams.smacv2.task import smacv2_task

ALL = Rules(
    obs_last_action=True,
    obs_pathing_grid=True,
    obs_terrain_height=True,
    obs_timestep_number=True,
    obs_own_pos=True,
    state_timestep_number=True,
)
LITTLE = Rules(obs_all_health=False, obs_own_health=False, state_last_action=False)


@pytest.mark.parametrize("rules", [None, ALL, LITTLE], ids=["the example's", "all", "little"])
@pytest.mark.parametrize("name", ["terran_5_vs_5", "protoss_10_vs_11", "3m"])
def test_as_many_names_as_numbers(name, rules):
    task = smac_task(name, rules) if name == "3m" else smacv2_task(name, rules=rules)
    sizes = task.sizes
    seen, whole = observation_names(sizes), state_names(sizes)
    assert (len(seen), len(whole)) == (sizes.observation, sizes.state)
    assert (len(set(seen)), len(set(whole))) == (len(seen), len(whole))


def test_some_names():
    sizes = smacv2_task("protoss_5_vs_5").sizes
    seen = observation_names(sizes)
    assert seen[:5] == [
        *[f"move_action_{where}" for where in ("north", "south", "east", "west")],
        "enemy_shootable_0",
    ]
    assert seen[-7:-3] == ["own_health", "own_shield", "own_pos_x", "own_pos_y"]
    assert state_names(sizes)[:6] == [
        *["ally_health_0", "ally_cooldown_0", "ally_relative_x_0", "ally_relative_y_0"],
        *["ally_shield_0", "ally_unit_type_0_bit_0"],
    ]


def test_a_state_of_observations_has_none():
    task = smacv2_task("terran_5_vs_5", rules=Rules(obs_instead_of_state=True))
    with pytest.raises(NotImplementedError, match="has no names"):
        state_names(Sizes(task.scenario, task.rules))
