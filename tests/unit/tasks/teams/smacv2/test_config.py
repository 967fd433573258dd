"""A capability config is read as SMACv2 reads it, and each number of an observation has a name."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from sc2pool.errors import ConfigError
from sc2pool.tasks.teams.smac.battle_task import smac_task
from sc2pool.tasks.teams.smac.features import Sizes
from sc2pool.tasks.teams.smac.rules import Rules
from sc2pool.tasks.teams.smac.scenarios import MARAUDER, MARINE, MEDIVAC
from sc2pool.tasks.teams.smacv2.config import (
    example_config,
    observation_names,
    random_teams,
    state_names,
)
from sc2pool.tasks.teams.smacv2.task import smacv2_task
from sc2pool.tasks.teams.smacv2.teams import MAPS

MAP = "10gen_terran"


def changed(path: str, value: Any, base: dict[str, Any] | None = None) -> dict[str, Any]:
    """The example's config with one value at a path replaced; None removes it."""
    config = copy.deepcopy(base or example_config(MAP, 5, 6))
    *parts, key = path.split(".")
    part = config
    for name in parts:
        part = part[name]
    if value is None:
        del part[key]
    else:
        part[key] = value
    return config


@pytest.mark.parametrize("map_name", MAPS)
def test_the_examples(map_name):
    teams = random_teams("any", map_name, example_config(map_name, 10, 11))
    assert (teams.n_agents, teams.n_enemies) == (10, 11)
    assert teams.kinds == teams.drawn_kinds == MAPS[map_name]
    assert teams.weights == (0.45, 0.45, 0.1)
    rare = () if map_name == "10gen_protoss" else (teams.kinds[2],)
    assert tuple(teams.exceptions) == rare
    assert (teams.placing, teams.p_reflect) == ("surrounded_and_reflect", 0.5)
    assert (teams.area, teams.shows_types) == ((32, 32), True)


def test_the_order_of_the_types_is_free_and_counts_may_be_repeated():
    config = changed("team_gen.unit_types", ["medivac", "marine"])
    config["team_gen"] |= {"weights": [0.25, 0.75], "n_units": 5, "n_enemies": 6}
    config["start_positions"]["n_enemies"] = 6
    teams = random_teams("any", MAP, config)
    assert teams.drawn_kinds == (MEDIVAC, MARINE)
    assert teams.kinds == (MARINE, MARAUDER, MEDIVAC), "as SMACv2 numbers them"


@pytest.mark.parametrize(
    ("path", "value", "message"),
    [
        ("n_units", 0, r"capability_config\.n_units must be 1 to 100, got 0"),
        ("n_units", 101, "n_units must be 1 to 100, got 101"),
        ("n_units", True, "n_units must be 1 to 100, got True"),
        ("n_enemies", None, r"capability_config\.n_enemies is missing"),
        ("team_gen", None, r"capability_config\.team_gen is missing"),
        ("team_gen", ["marine"], r"team_gen must be a dictionary, got \['marine'\]"),
        ("team_gen.dist_type", "fixed", "dist_type must be one of weighted_teams, got 'fixed'"),
        ("team_gen.unit_types", ["zealot"], "made of marine, marauder, medivac, .* 'zealot'"),
        ("team_gen.unit_types", ["ghost"], "which this map has; got 'ghost'"),
        ("team_gen.unit_types", "marine", "must be a list of names, got 'marine'"),
        ("team_gen.unit_types", [], "must have each type once"),
        ("team_gen.unit_types", ["marine", "marine"], "must have each type once"),
        ("team_gen.weights", [0.5, 0.4, 0.2], r"must have the sum 1, got .*: 1\.1"),
        ("team_gen.weights", [0.5, 0.5], "weights must be 3, one for each type"),
        ("team_gen.weights", [1.5, -0.5, 0], "must be a list of shares"),
        ("team_gen.weights", 1, "must be a list of shares, got 1"),
        ("team_gen.exception_unit_types", ["stalker"], "exception_unit_types must be made of"),
        (
            "team_gen.exception_unit_types",
            ["marine", "marauder", "medivac"],
            "exception_unit_types must leave types with at least 0.001 of the weights",
        ),
        ("team_gen.observe", 1, "observe must be True or False, got 1"),
        ("team_gen.n_units", 4, r"team_gen\.n_units must be 5, as in capability_config"),
        ("start_positions.dist_type", "corner", "surrounded_and_reflect, reflect_position, surr"),
        ("start_positions.p", 1.5, r"start_positions\.p must be 0 to 1, got 1\.5"),
        ("start_positions.p", None, r"start_positions\.p is missing"),
        ("start_positions.map_x", 64, r"map_x must be 0 to 32, got 64"),
        ("start_positions.q", 1, r"capability_config\.start_positions has unknown keys: q"),
        ("enemy_mask", {"dist_type": "mask"}, "capability_config has unknown keys: enemy_mask"),
    ],
)
def test_wrong_configurations_are_refused(path, value, message):
    with pytest.raises(ConfigError, match=message):
        random_teams("any", MAP, changed(path, value))


@pytest.mark.parametrize("rare", [0, 1e-9])
def test_types_without_a_weight_make_no_team(rare):
    config = changed("team_gen.weights", [rare, 0, 1 - rare])
    with pytest.raises(ConfigError, match=r"must leave types with at least 0\.001 of the weights"):
        random_teams("any", MAP, config)


def test_an_unknown_race():
    with pytest.raises(ConfigError, match=r"one of 10gen_terran, .*, got '10gen_xelnaga'"):
        random_teams("any", "10gen_xelnaga", example_config(MAP, 5, 5))
    with pytest.raises(ConfigError, match="got 'terran_5_vs_5'"):
        example_config("terran_5_vs_5", 5, 5)


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
