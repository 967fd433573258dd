"""Who lives, how a battle ends, and what a step earns."""

from __future__ import annotations

import pytest

from sc2pool.errors import ConfigError
from sc2pool.tasks.teams.smac.battle import DRAWN, LOST, WON, Battle
from sc2pool.tasks.teams.smac.rules import Rules
from sc2pool.tasks.teams.smac.scenarios import SCENARIOS
from tests.unit.tasks.teams.smac.conftest import (
    FIRST_COPY,
    enemies,
    marines,
    medivacs_battle,
    unit,
)


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


def test_damage_and_kills_are_earned(begin, seen):
    battle = begin(marines(3) + enemies(3))
    assert battle.largest_reward == 3 * 10 + 200 + 3 * 50
    hurt = enemies(1, health=20.0) + enemies(1, first_tag=102)  # the third one is dead
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


def test_losses_cost_if_the_rules_say_so(begin, seen):
    battle = begin(marines(3) + enemies(3), rules=Rules(reward_only_positive=False))
    battle.update(seen(marines(2) + enemies(3, health=40.0)))
    assert battle.reward == 3 * 10 - 0.5 * (50 + 10)


def test_sparse_rewards(begin, seen):
    battle = begin(marines(3) + enemies(3), rules=Rules(reward_sparse=True))
    battle.update(seen(marines(3) + enemies(1)))
    assert battle.reward == 0


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
