"""A battle of SMAC: its ground, what agents see, their actions, its end and its rewards."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from s2clientprotocol import sc2api_pb2 as sc_pb

from sc2pool.errors import ConfigError
from sc2pool.tasks.teams.battle import (
    DRAWN,
    LOST,
    NOTHING,
    STOP,
    WON,
    Battle,
    Ground,
    as_commands,
    available,
)
from sc2pool.tasks.teams.features import Sizes
from sc2pool.tasks.teams.scenarios import SCENARIOS, Rules
from tests.unit.tasks.teams.conftest import (
    FIRST_COPY,
    enemies,
    marines,
    medivacs_battle,
    seen_by,
    unit,
)

# ---- the map's grids -----------------------------------------------------------------------------


def described(bits_per_pixel: int, grid: bytes) -> sc_pb.ResponseGameInfo:
    info = sc_pb.ResponseGameInfo()
    raw = info.start_raw
    raw.map_size.x = raw.map_size.y = 8
    raw.playable_area.p1.x, raw.playable_area.p1.y = 8, 6
    raw.pathing_grid.bits_per_pixel = bits_per_pixel
    raw.pathing_grid.data = grid
    raw.terrain_height.bits_per_pixel = 8
    raw.terrain_height.data = bytes(range(64))
    for one in (raw.pathing_grid, raw.terrain_height):
        one.size.x = one.size.y = 8
    return info


def test_a_bit_per_cell():
    ground = Ground.of(described(1, bytes([0b10000000] + [0] * 6 + [0b00000001])))
    assert ground.playable == (8, 6)
    assert ground.walkable[0, 0]
    assert ground.walkable[7, 7]
    assert ground.walkable.sum() == 2


def test_a_byte_per_cell_is_turned_over_and_0_is_ground():
    cells = np.full((8, 8), 255, np.uint8)
    cells[0, 3] = 0  # the top row
    ground = Ground.of(described(8, cells.tobytes()))
    assert np.argwhere(ground.walkable).tolist() == [[3, 7]]


def test_heights_are_turned_over():
    ground = Ground.of(described(1, bytes(8)))
    assert ground.height[1, 0] == 57 / 255


def test_outside_no_unit_can_move_but_it_looks_like_ground(ground):
    corner = np.array([(0.2, 23.6)])
    assert ground.can_move(corner, 2).tolist() == [[False, True, True, True]]
    assert ground.walkable_around(corner, 2).tolist() == [
        # The order is north, south, east, west, north-east, south-west, south-east, north-west.
        [False, True, True, True, False, True, True, True]
    ]
    assert ground.height_around(corner, 2)[0, [2, 3, 8]].tolist() == [0.5, 1.0, 0.5]


def test_half_a_turn():
    ground = Ground.of(described(1, bytes([0b11000000] + [0] * 7)))
    assert np.argwhere(ground.walkable).tolist() == [[0, 0], [1, 0]]
    turned = ground.turned()
    assert np.argwhere(turned.walkable).tolist() == [[6, 7], [7, 7]]
    assert turned.height[7, 7] == ground.height[0, 0]
    assert np.array_equal(turned.turned().height, ground.height)


# ---- what agents see; tests/peers/compare_smac.py compares it with SMAC --------------------------


SMACS_SIZES = {
    # Numbers from SMAC's get_env_info with its defaults: observation, state, actions.
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


# ---- actions and commands ------------------------------------------------------------------------


def test_living_agents_stop_move_and_attack_near_enemies(begin, ground):
    battle = begin(marines(3) + enemies(2, x=15.0) + enemies(1, first_tag=103, x=16.0))
    masks = available(battle, ground)
    assert masks.shape == (3, 9)
    assert masks[0].tolist() == [False, True, True, True, True, True, True, False, False], (
        "the first enemy is exactly six cells away, which is in range"
    )


def test_half_a_move_must_lead_to_ground(begin, ground):
    battle = begin(marines(3) + enemies(3))
    battle.allies.positions[:] = [(0.5, 16), (31.5, 16), (9, 8.5)]
    moves = available(battle, ground)[:, 2:6]
    assert moves.tolist() == [
        [True, True, True, True],  # to the west x is -0.5, which SMAC truncates to cell 0
        [True, True, False, True],
        [True, False, True, True],
    ]


def test_the_dead_do_nothing(begin, ground, seen):
    battle = begin(marines(3) + enemies(3))
    battle.update(seen(marines(3)[1:] + enemies(3)))
    masks = available(battle, ground)
    assert np.flatnonzero(masks[0]).tolist() == [NOTHING]
    assert not masks[1:, NOTHING].any()


def test_medivacs_heal_allies_near_them_but_no_medivac(begin, ground):
    battle = begin(medivacs_battle(), "MMM")
    targets = available(battle, ground)[9, 6:]
    assert targets.tolist() == [True] * 9 + [False]
    (command,) = as_commands(battle, available(battle, ground), [0] * 9 + [8])
    assert (command.ability_id, command.target_unit_tag) == (386, battle.allies.tags[2])


def test_commands_of_each_action(begin, ground):
    battle = begin(marines(3) + enemies(3, x=12.0))
    masks = available(battle, ground)
    stop, east, attack = as_commands(battle, masks, [STOP, 4, 7])
    assert (stop.ability_id, list(stop.unit_tags)) == (4, [1])
    assert east.ability_id == 16
    assert (east.target_world_space_pos.x, east.target_world_space_pos.y) == (11, 17)
    assert (attack.ability_id, attack.target_unit_tag) == (23, 102)


def test_unavailable_action_becomes_no_command(begin, ground):
    battle = begin(marines(3) + enemies(3))
    masks = available(battle, ground)
    assert as_commands(battle, masks, [6, 7, NOTHING]) == []


# ---- ends and rewards ----------------------------------------------------------------------------


def test_agents_are_numbered_by_type_and_place_enemies_as_listed(begin):
    own = [
        unit(1, FIRST_COPY + 1, 5, 5),
        unit(2, FIRST_COPY, 9, 9),
        unit(3, FIRST_COPY, 9, 8),
        unit(4, FIRST_COPY + 1, 4, 9),
        unit(5, FIRST_COPY + 1, 5, 4),
    ]
    others = [unit(100 - i, kind, 1, 1, enemy=True) for i, kind in enumerate([74, 73, 73, 74, 73])]
    battle = begin(own + others, "2s3z")
    assert battle.allies.tags == [3, 2, 4, 5, 1]
    assert battle.enemies.tags == [100, 99, 98, 97, 96]
    assert [battle.allies.kinds[i].name for i in battle.allies.kind][:2] == ["stalker", "stalker"]
    names = [battle.enemies.kinds[i].name for i in battle.enemies.kind]
    assert names == ["stalker", "zealot", "zealot", "stalker", "zealot"]


def test_no_battle_until_all_units_are_there(seen):
    units = marines(3) + enemies(2)
    assert Battle.begun(SCENARIOS["3m"], Rules(), seen(units)) is None


def test_units_of_other_types_are_an_error(seen):
    units = [unit(1, 2060, 1, 1), unit(2, 2061, 1, 1), unit(3, 2060, 2, 1), *enemies(3)]
    with pytest.raises(ConfigError, match=r"expected 3 marine; .* types \[2060, 2060, 2061\]"):
        Battle.begun(SCENARIOS["3m"], Rules(), seen(units))
    units = [*marines(3), *enemies(2), unit(103, 51, 23, 18, enemy=True)]
    with pytest.raises(ConfigError, match=r"expected 3 marine; .* types \[48, 48, 51\]"):
        Battle.begun(SCENARIOS["3m"], Rules(), seen(units))


def test_damage_and_kills_are_earned(begin, seen):
    battle = begin(marines(3) + enemies(3))
    assert battle.largest_reward == 3 * 10 + 200 + 3 * 50
    hurt = enemies(1, health=20.0) + enemies(1, first_tag=102)  # 103 is missing: it is dead
    battle.update(seen(marines(2) + hurt))
    assert battle.reward == 30 + 50 + 10, "losses cost nothing by default"
    battle.update(seen(marines(2) + hurt))
    assert battle.reward == 0, "a death counts once"
    assert battle.outcome() is None


def test_recovered_shields_count_as_in_smac(begin, seen):
    def zealots(shield: float) -> list:
        kinds = [unit(101 + i, 73, 9, 16, enemy=True, shield_max=50.0) for i in range(3)]
        for one in kinds:
            one.shield = shield
        return kinds

    battle = begin(marines(3) + zealots(10.0), "3s_vs_3z")
    battle.update(seen(marines(3) + zealots(12.0)))
    assert battle.reward == 6


@pytest.mark.parametrize(
    ("rules", "reward"),
    [({"reward_only_positive": False}, 3 * 10 - 0.5 * (50 + 10)), ({"reward_sparse": True}, 0)],
)
def test_losses_cost_and_rewards_are_sparse_if_the_rules_say_so(begin, seen, rules, reward):
    battle = begin(marines(3) + enemies(3), rules=Rules(**rules))
    battle.update(seen(marines(2) + enemies(3, health=40.0)))
    assert battle.reward == reward


@pytest.mark.parametrize(
    ("n_allies", "n_enemies", "outcome"),
    [(3, 3, None), (1, 0, WON), (0, 1, LOST), (0, 0, DRAWN)],
)
def test_the_end(begin, seen, n_allies, n_enemies, outcome):
    battle = begin(marines(3) + enemies(3))
    battle.update(seen(marines(n_allies) + enemies(n_enemies)))
    assert battle.outcome() == outcome


def test_medivacs_alone_decide_a_battle(begin, seen):
    units = medivacs_battle()
    allies, others = units[:10], units[10:]
    battle = begin(units, "MMM")
    assert battle.allies.cooldown[9] == 100, "its energy"
    battle.update(seen(allies + others[-1:]))
    assert battle.outcome() == WON
    battle.update(seen(allies[-1:] + others))
    assert battle.outcome() == LOST
    battle.update(seen(allies + others[-2:-1]))
    assert battle.outcome() is None, "a marine is left"
