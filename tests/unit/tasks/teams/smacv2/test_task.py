"""SMACv2's scenarios by name, what a class of random teams gets, and how its battles end."""

from __future__ import annotations

import pickle

import pytest

from sc2pool.errors import ConfigError
from sc2pool.tasks.registry import SMACV2, resolve
from sc2pool.tasks.teams.smac.battle import LOST, WON
from sc2pool.tasks.teams.smac.rules import Rules
from sc2pool.tasks.teams.smac.scenarios import MARINE, MEDIVAC, ZEALOT
from sc2pool.tasks.teams.smacv2.config import example_config
from sc2pool.tasks.teams.smacv2.task import (
    EXAMPLE_RULES,
    SCENARIOS,
    smacv2_task,
    terran_outcome,
)
from tests.unit.tasks.teams.smac.conftest import observed
from tests.unit.tasks.teams.smacv2.conftest import ally, enemy

SIZES = {
    # What SMACv2's get_env_info says with its examples' options: observation, state, actions.
    "terran_5_vs_5": (82, 120, 11),
    "zerg_5_vs_5": (82, 120, 11),
    "protoss_5_vs_5": (92, 130, 11),
}


def test_every_scenario_has_a_name_in_the_registry():
    assert set(SMACV2) == set(SCENARIOS)
    for name in SMACV2:
        task = resolve(name)
        assert task.map_name == "32x32_flat"
        assert task.rules == EXAMPLE_RULES
        assert pickle.loads(pickle.dumps(task)) is task
    assert len(resolve("10gen_zerg").agents) == 10


@pytest.mark.parametrize("name", SIZES)
def test_sizes_are_smacv2s(name):
    task = smacv2_task(name)
    sizes = task.sizes
    assert (sizes.observation, sizes.state, sizes.n_actions) == SIZES[name]
    assert task.max_loops == 200 * 8
    assert task.opponents[0].race == task.race_requested == task.scenario.kinds[0].race


def test_a_config_of_ones_own():
    def make():
        config = example_config("10gen_protoss", 3, 4)
        return smacv2_task("10gen_protoss", config, Rules(obs_own_pos=True))

    task = make()
    assert (task.scenario.n_agents, task.scenario.n_enemies) == (3, 4)
    assert not task.rules.use_unit_ranges
    assert make() is task


@pytest.mark.parametrize(
    ("name", "config", "message"),
    [
        ("terran_6_vs_6", None, "no scenario 'terran_6_vs_6'; SMACv2 has terran_5_vs_5"),
        ("terran_5_vs_5", {}, "play on one of 10gen_terran, .* got 'terran_5_vs_5'"),
        ("10gen_terran", {}, "n_units is missing"),
    ],
)
def test_no_such_scenario(name, config, message):
    with pytest.raises(ConfigError, match=message):
        smacv2_task(name, config)


MARINES = [ally(1, MARINE, 1, 1), ally(2, MEDIVAC, 2, 2), enemy(3, MARINE, 9, 9)]


@pytest.mark.parametrize(
    ("left", "outcome"),
    [([0, 1, 2], None), ([1, 2], LOST), ([0, 1], WON), ([1], LOST), ([], LOST), ([0, 2], None)],
)
def test_how_a_terran_battle_ends(begin, left, outcome):
    battle = begin(MARINES)
    battle.update(observed([MARINES[i] for i in left]))
    assert terran_outcome(battle) == outcome


def test_recovered_shields_earn_nothing(begin):
    units = [ally(1, ZEALOT, 1, 1), enemy(2, ZEALOT, 9, 9, shield=10.0, shield_max=50.0)]
    battle = begin(units, "10gen_protoss")
    healed = [units[0], enemy(2, ZEALOT, 9, 9, shield=30.0, shield_max=50.0)]
    battle.update(observed(healed))
    assert battle.reward == 0
