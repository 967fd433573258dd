"""What agents see, and the state; SMAC itself is compared in tests/peers/compare_smac.py."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest

from sc2pool.tasks.teams.smac.actions import available
from sc2pool.tasks.teams.smac.features import Sizes, observations, state
from sc2pool.tasks.teams.smac.rules import Rules
from sc2pool.tasks.teams.smac.scenarios import SCENARIOS
from tests.unit.tasks.teams.smac.conftest import enemies, marines, medivacs_battle

SMACS_SIZES = {
    # What SMAC's get_env_info says with its defaults: observation, state, actions.
    "3m": (30, 48, 9),
    "8m": (80, 168, 14),
    "5m_vs_6m": (55, 98, 12),
    "2s3z": (80, 120, 11),
    "MMM": (160, 290, 16),
    "corridor": (156, 282, 30),
    "27m_vs_30m": (285, 1170, 36),
}


@pytest.mark.parametrize("name", SMACS_SIZES)
def test_sizes_are_smacs(name):
    sizes = Sizes(SCENARIOS[name], Rules())
    assert (sizes.observation, sizes.state, sizes.n_actions) == SMACS_SIZES[name]


def seen_by(battle, ground, elapsed=0.0):
    n, actions = len(battle.allies.tags), 6 + len(battle.enemies.tags)
    last = np.zeros((n, actions), np.float32)
    masks = available(battle, ground)
    seen = observations(battle, ground, masks, last, elapsed)
    return seen, state(battle, ground, last, elapsed, seen)


OPTIONS = [
    {},
    {"obs_all_health": False, "obs_own_health": False},
    {"obs_last_action": True, "obs_pathing_grid": True, "obs_terrain_height": True},
    {"obs_timestep_number": True, "state_timestep_number": True, "state_last_action": False},
    {"obs_instead_of_state": True},
]


@pytest.mark.parametrize("options", OPTIONS, ids=str)
@pytest.mark.parametrize("name", ["3m", "MMM"])
def test_observations_have_the_sizes(begin, ground, options, name):
    rules = Rules(**options)
    units = marines(3) + enemies(3) if name == "3m" else medivacs_battle()
    seen, whole = seen_by(begin(units, name, rules), ground, 0.5)
    sizes = Sizes(SCENARIOS[name], rules)
    assert seen.shape == (SCENARIOS[name].n_agents, sizes.observation)
    assert whole.shape == (sizes.state,)
    assert seen.dtype == whole.dtype == np.float32


def test_an_enemy_and_an_ally_in_sight(begin, ground):
    battle = begin(marines(3) + enemies(3, x=12.0, health=25.0))
    seen, whole = seen_by(battle, ground)
    first = seen[0]
    assert first[:4].tolist() == [1, 1, 1, 1]
    enemy = [1, 3 / 9, 3 / 9, 0, 0.5]
    ally = [1, 1 / 9, 0, 1 / 9, 1]
    np.testing.assert_allclose(first[4:9], enemy, rtol=1e-6)
    np.testing.assert_allclose(first[19:24], ally, rtol=1e-6)
    assert first[-1] == 1, "its own health"
    np.testing.assert_allclose(whole[:4], [1, 0, -7 / 32, 0], rtol=1e-6)


def test_unit_out_of_sight_or_dead_is_zeros(begin, ground, seen):
    battle = begin(marines(3) + enemies(3, x=18.0))
    first, _ = seen_by(battle, ground)
    assert not first[0, 4:19].any(), "nine cells away is out of sight"
    battle.update(seen(marines(3)[1:] + enemies(3, x=12.0)))
    again, whole = seen_by(battle, ground)
    assert not again[0].any()
    assert not again[1, 19:24].any(), "the dead ally"
    assert not whole[:4].any()


def test_the_state_has_energy_and_types(begin, ground):
    battle = begin(medivacs_battle(), "MMM")
    _, whole = seen_by(battle, ground)
    medivac = whole[9 * 7 : 10 * 7]
    np.testing.assert_allclose(medivac, [1, 0.5, -7 / 32, 1 / 32, 0, 0, 1], rtol=1e-6)


def test_agent_is_not_its_own_ally(begin, ground):
    battle = begin(marines(3) + enemies(3))
    seen, _ = seen_by(battle, ground)
    of_allies = seen[:, 19:29].reshape(3, 2, 5)
    assert (of_allies[:, :, 1] > 0).all()
    assert all(not np.array_equal(one, other) for one, other in pairwise(of_allies))
