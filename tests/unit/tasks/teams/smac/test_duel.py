"""Duels of scenarios: which there are, how both sides number the units, and how they end."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest
from s2clientprotocol import raw_pb2
from s2clientprotocol import sc2api_pb2 as sc_pb

from sc2pool.errors import ConfigError
from sc2pool.tasks.registry import SMAC_DUELS, resolve
from sc2pool.tasks.teams.smac.actions import as_commands, available
from sc2pool.tasks.teams.smac.battle import DRAWN, LOST, WON, Battle
from sc2pool.tasks.teams.smac.battle_task import smac_task
from sc2pool.tasks.teams.smac.duel import DUELS, SmacDuel, begun, smac_duel
from sc2pool.tasks.teams.smac.features import observations, state
from sc2pool.tasks.teams.smac.rules import ZERO_SUM, Rules
from sc2pool.tasks.teams.smac.scenarios import SCENARIOS
from tests.unit.tasks.teams.smac.conftest import FIRST_COPY, Seen, unit

SIZE = (32, 32)
Placed = tuple[int, int, float, float]
"""A unit's tag, type, and place on the map."""


def of_both(
    first: Sequence[Placed], second: Sequence[Placed], player: int, **fields: Any
) -> list[raw_pb2.Unit]:
    """The units as a player sees them; all of them have the copies' numbers."""
    return [
        unit(tag, FIRST_COPY + kind, x, y, enemy=owner != player, **fields)
        for owner, units in ((1, first), (2, second))
        for tag, kind, x, y in units
    ]


def turned(units: Sequence[Placed]) -> list[Placed]:
    """The same units of the other player."""
    return [(tag + 100, kind, SIZE[0] - x, SIZE[1] - y) for tag, kind, x, y in units]


MARINES: list[Placed] = [(1, 0, 9.0, 16.75), (2, 0, 9.0, 15.25), (3, 0, 9.75, 16.0)]
TOGETHER: list[Placed] = [(1, 0, 14.0, 16.0), (2, 0, 13.0, 14.5), (3, 0, 12.0, 18.0)]


@pytest.fixture
def both(seen: Seen) -> Callable[..., tuple[Battle, Battle]]:
    """Begins the battle that each of the players sees."""

    def begin(
        first: Sequence[Placed], scenario: str = "3m", rules: Rules | None = None
    ) -> tuple[Battle, Battle]:
        battles = []
        for player, turned_on in ((1, None), (2, SIZE)):
            observed = seen(of_both(first, turned(first), player))
            battles.append(begun(SCENARIOS[scenario], rules or Rules(), observed, turned_on))
        return battles[0], battles[1]

    return begin


def test_even_scenarios_have_a_duel():
    assert set(SMAC_DUELS) == set(DUELS)
    assert len(DUELS) == 8
    for name, scenario in DUELS.items():
        task = resolve(name)
        assert (task.__name__, task.map_name, task.players) == (name, name, 2)
        assert task.opponents == ()
        of_scenario = smac_task(scenario.name)
        assert task.observation_space == of_scenario.observation_space
        assert task.action_space == of_scenario.action_space
        assert task.max_loops == of_scenario.max_loops
        assert pickle.loads(pickle.dumps(task)) is task


@pytest.mark.parametrize(
    ("name", "why"),
    [("5m_vs_6m", "its sides have different units"), ("4m", "no such scenario")],
)
def test_others_have_none(name, why):
    with pytest.raises(ConfigError, match=f"no duel of '{name}': {why}; there is one of 3m, 8m"):
        smac_duel(name)
    with pytest.raises(ConfigError, match="unknown task '5m_vs_6m_duel'"):
        resolve("5m_vs_6m_duel")


def test_other_options():
    task = smac_duel("3m", Rules(obs_last_action=True))
    assert task.map_name == "3m_duel"
    assert task.observation_space.shape == (48,)


def test_enemies_are_numbered_as_they_number_themselves(both):
    first, second = both(MARINES)
    assert first.allies.tags == second.enemies.tags == [2, 1, 3]
    assert second.allies.tags == first.enemies.tags == [102, 101, 103]


@pytest.mark.parametrize("units", [MARINES, TOGETHER])
def test_both_see_the_same(both, ground, units):
    told = []
    for battle, side in zip(both(units), (ground, ground.turned()), strict=True):
        masks = available(battle, side)
        last = np.zeros((3, 9), np.float32)
        seen = observations(battle, side, masks, last, 0.0)
        told.append((masks.tolist(), seen.tolist(), state(battle, side, last, 0, seen).tolist()))
    assert told[0] == told[1]


def test_types_have_smacs_places_for_enemies(both):
    """SMAC numbers the enemy's zealots before its stalkers."""
    units: list[Placed] = [(i, int(i > 2), 9.0 + i, 16.0) for i in range(1, 6)]
    for battle in both(units, "2s3z"):
        names = [
            [side.kinds[i].name for i in side.kind] for side in (battle.allies, battle.enemies)
        ]
        assert names == [["stalker"] * 2 + ["zealot"] * 3] * 2
        assert [kind.name for kind in battle.enemies.kinds] == ["zealot", "stalker"]


def test_the_second_player_moves_the_other_way(both):
    places = []
    for battle in both(MARINES):
        (order, *_) = as_commands(battle, np.ones((3, 9), np.bool_), [4, 2, 3])
        target = order.target_world_space_pos
        places.append((target.x, target.y))
    assert places == [(11.0, 15.25), (21.0, 16.75)], "both walk east as they see it"


def test_no_battle_without_all_units(seen):
    observed = seen(of_both(MARINES, turned(MARINES)[:2], player=1))
    assert begun(SCENARIOS["3m"], Rules(), observed, None) is None


def test_units_of_other_types(seen):
    odd = [(101, 0, 20.0, 16.0), (102, 1, 21.0, 16.0), (103, 2, 22.0, 16.0)]
    with pytest.raises(ConfigError, match="expected 3 marine; the map has units of the types"):
        begun(SCENARIOS["3m"], Rules(), seen(of_both(MARINES, odd, player=1)), None)


def in_battle(battle: Battle) -> SmacDuel:
    task = smac_duel(battle.scenario.name, battle.rules)()
    assert isinstance(task, SmacDuel)
    task.begin(battle)
    return task


@pytest.mark.parametrize(
    ("left", "outcome", "result"),
    [
        (([1], [101]), None, None),
        (([1], []), WON, sc_pb.Victory),
        (([], [101]), LOST, sc_pb.Defeat),
        (([], []), DRAWN, sc_pb.Tie),
    ],
)
def test_how_it_ends(both, seen, left, outcome, result):
    first, second = both(MARINES)
    mine = [one for one in MARINES if one[0] in left[0]]
    theirs = [one for one in turned(MARINES) if one[0] in left[1]]
    first.update(seen(of_both(mine, theirs, player=1)))
    second.update(seen(of_both(mine, theirs, player=2)))
    opposite = {None: None, WON: LOST, LOST: WON, DRAWN: DRAWN}
    assert in_battle(first).outcome() == outcome
    assert in_battle(second).outcome() == opposite[outcome]
    assert in_battle(first).result() == result


MMM: list[Placed] = [(i, int(i > 2) + int(i > 9), 5.0 + i, 16.0) for i in range(1, 11)]
MEDIVACS = MMM[-1:], turned(MMM)[-1:]


@pytest.mark.parametrize(
    ("first", "second", "outcome"),
    [
        (MEDIVACS[0], turned(MMM)[:1], LOST),
        (MMM[:1], MEDIVACS[1], WON),
        (*MEDIVACS, DRAWN),
        (MEDIVACS[0], [], DRAWN),
    ],
)
def test_medivacs_alone_have_lost(both, seen, first, second, outcome):
    battle, of_second = both(MMM, "MMM")
    battle.update(seen(of_both(first, second, player=1)))
    of_second.update(seen(of_both(first, second, player=2)))
    assert in_battle(battle).outcome() == outcome
    assert in_battle(of_second).outcome() == -outcome


@pytest.mark.parametrize("left", [([1, 2], [101]), ([1], []), ([], [101]), ([], [])])
def test_zero_sum(both, seen, left):
    rewards = []
    for player, battle in enumerate(both(MARINES, rules=ZERO_SUM), 1):
        mine = [one for one in MARINES if one[0] in left[0]]
        theirs = [one for one in turned(MARINES) if one[0] in left[1]]
        battle.update(seen(of_both(mine, theirs, player, health=30.0)))
        rewards.append(in_battle(battle).reward())
    assert rewards[0] == pytest.approx(-rewards[1])
    assert (rewards[0] != 0) == (left != ([], []))


def test_scripted_players_walk_to_the_other_end():
    far = np.zeros(smac_duel("3m").sizes.observation, np.float32)
    far[:4] = 1.0
    assert smac_duel("3m").scripted(far) == 4
    far = np.zeros(smac_duel("bane_vs_bane").sizes.observation, np.float32)
    far[:4] = 1.0
    assert smac_duel("bane_vs_bane").scripted(far) == 2
