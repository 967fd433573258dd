"""What is drawn for battles: as often as the weights say, and where SMACv2 lets units begin."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest

from sc2pool.tasks.teams.smac.scenarios import MARAUDER, MARINE, MEDIVAC, STALKER
from sc2pool.tasks.teams.smacv2.config import example_config, random_teams
from sc2pool.tasks.teams.smacv2.teams import RandomTeams


def teams(
    n: int = 5, m: int = 5, map_name: str = "10gen_terran", placing: str = "surrounded_and_reflect"
) -> RandomTeams:
    config = example_config(map_name, n, m)
    config["start_positions"]["dist_type"] = placing
    return random_teams("any", map_name, config)


def test_types_come_as_often_as_their_weights_say():
    rng = np.random.default_rng(0)
    drawn = Counter(kind for _ in range(400) for kind in teams(20, 20).draw(rng).allies)
    shares = [drawn[kind] / 8000 for kind in (MARINE, MARAUDER, MEDIVAC)]
    np.testing.assert_allclose(shares, [0.45, 0.45, 0.1], atol=0.02)


def test_no_team_of_exceptions_alone():
    rng = np.random.default_rng(0)
    alone = [teams(1, 2).draw(rng) for _ in range(200)]
    assert all(MEDIVAC not in (*one.allies, *one.enemies) for one in alone), (
        "the second enemy is a team of its own"
    )
    protoss = [teams(1, 1, "10gen_protoss").draw(rng).allies[0].name for _ in range(200)]
    assert "colossus" in protoss


@pytest.mark.parametrize(("n", "m"), [(5, 5), (5, 8), (8, 5)])
@pytest.mark.parametrize("placing", ["surrounded", "reflect_position"])
def test_the_enemies_are_the_same_and_more(n, m, placing):
    drawn = teams(n, m, "10gen_protoss", placing).draw(np.random.default_rng(4))
    assert (len(drawn.allies), len(drawn.enemies)) == (n, m)
    assert drawn.enemies[:n] == drawn.allies[:m]
    assert (drawn.ally_places.shape, drawn.enemy_places.shape) == ((n, 2), (m, 2))


def test_reflected_places():
    rng = np.random.default_rng(0)
    for _ in range(50):
        drawn = teams(6, 9, placing="reflect_position").draw(rng)
        own, enemy = drawn.ally_places, drawn.enemy_places
        assert ((own >= 0) & (own <= (15, 32))).all()
        np.testing.assert_allclose(enemy[:6], np.column_stack([32 - own[:, 0], own[:, 1]]))
        assert (enemy[6:, 0] >= 16).all()


def test_surrounded_places():
    rng = np.random.default_rng(0)
    groups = set()
    for _ in range(200):
        drawn = teams(10, 10, placing="surrounded").draw(rng)
        assert (drawn.ally_places == 16).all()
        away = np.abs(drawn.enemy_places - 16)
        np.testing.assert_allclose(away[:, 0], away[:, 1], err_msg="on a diagonal")
        assert ((away >= 2) & (away <= 16)).all()
        groups.add(len({tuple(place) for place in drawn.enemy_places.tolist()}))
    assert groups == {1, 2, 3, 4}


def test_both_ways_as_often_as_p_says():
    rng = np.random.default_rng(0)
    half = teams()
    centred = [bool((half.draw(rng).ally_places == 16).all()) for _ in range(400)]
    assert 0.4 < np.mean(centred) < 0.6


def test_a_seed_repeats():
    one, other = (teams(20, 23).draw(np.random.default_rng(7)) for _ in range(2))
    assert (one.allies, one.enemies) == (other.allies, other.enemies)
    assert (one.enemy_places == other.enemy_places).all()


def test_sizes_and_names_of_a_contest():
    assert (teams(8, 5).n_targets, teams(5, 8).n_targets) == (8, 8), "medivacs heal allies"
    protoss = teams(8, 5, "10gen_protoss")
    assert protoss.n_targets == 5
    assert (protoss.kinds[0], protoss.n_types, protoss.limit) == (STALKER, 3, 200)
    assert protoss.agents[7] == "agent_7"
