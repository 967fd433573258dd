"""SMAC's tasks: their classes, scenarios and options, the scripted players, and the duels."""

from __future__ import annotations

import pickle
import re
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pytest
from s2clientprotocol import raw_pb2
from s2clientprotocol import sc2api_pb2 as sc_pb

import sc2standin
from sc2pool.errors import ConfigError
from sc2pool.tasks.registry import SMAC, SMAC_DUELS, resolve_task
from sc2pool.tasks.task import row_space
from sc2pool.tasks.teams.battle import DRAWN, LOST, WON, Battle, as_commands, available
from sc2pool.tasks.teams.battle_task import DUELS, SmacDuel, SmacTask, begun, smac_duel, smac_task
from sc2pool.tasks.teams.features import Sizes
from sc2pool.tasks.teams.scenarios import SCENARIOS, ZERO_SUM, Rules
from sc2pool.tasks.teams.scripted import EAST, NORTH, SOUTH, WEST, Heuristic, choose, towards
from sc2pool.tasks.teams.smacv2 import smacv2_task
from sc2standin.map_reader.real_map import read_scenario
from tests.unit.tasks.teams.conftest import (
    FIRST_COPY,
    Seen,
    enemies,
    marines,
    medivacs_battle,
    seen_by,
    unit,
)

# ---- a class with a scenario ---------------------------------------------------------------------


def test_a_scenarios_task():
    task = smac_task("MMM")
    assert task.__name__ == task.map_name == "MMM"
    assert task.observation_space.shape == (160,)
    assert task.state_space.shape == (290,)
    assert task.action_space.n == 16
    assert task.max_loops == 150 * 8
    assert [one.race for one in task.opponents] == [1]
    assert len(task.agents) == 10


def test_other_options_make_other_spaces():
    class Told(smac_task("3m")):
        rules = Rules(obs_last_action=True)
        step_mul = 4

    assert Told.observation_space.shape == (48,)
    assert Told.max_loops == 60 * 4
    assert Told.map_name == "3m"
    for make, map_name in ((smac_task, "3m"), (smac_duel, "3m_duel")):
        task = make("3m", Rules(obs_last_action=True))
        assert (task.map_name, task.observation_space.shape) == (map_name, (48,))


def test_a_subclass_keeps_what_its_parent_defines():
    class Short(smac_task("3m")):
        max_loops = 80
        map_name = "Other"

    class Shared(Short):
        shares_state = True

    assert (Shared.max_loops, Shared.map_name) == (80, "Other")
    assert row_space(Shared)["state"] is Shared.state_space


def test_no_such_scenario():
    with pytest.raises(ConfigError, match="no scenario '4m'; SMAC has 3m, 8m"):
        smac_task("4m")
    with pytest.raises(ConfigError, match=r"unknown task '4m'; did you mean '\w+'\?"):
        resolve_task("4m")


def test_a_class_without_a_scenario_is_no_task_yet():
    class Base(SmacTask):
        pass

    with pytest.raises(ConfigError, match="class attribute 'map_name' must be a str"):
        resolve_task(Base)


# ---- scenarios -----------------------------------------------------------------------------------


MAPS = Path(sc2standin.__file__).parent / "maps" / "smac"


def test_every_scenario_has_a_name_in_the_registry():
    assert set(SMAC) == set(SCENARIOS) == {path.stem for path in MAPS.iterdir()}
    for name in SMAC:
        task = resolve_task(name)
        assert task.scenario is SCENARIOS[name]
        assert pickle.loads(pickle.dumps(task)) is task


@pytest.mark.parametrize("name", SCENARIOS)
def test_the_maps_have_its_units(name):
    scenario = SCENARIOS[name]
    counts = Counter()
    ids = {}
    for group in read_scenario((MAPS / f"{name}.SC2Map").read_bytes()).units:
        kind = re.sub("_(RL|Liberty)$", "", group.type.name).lower()
        counts[group.owner, kind] += group.count
        if group.owner == 1:
            ids[kind] = group.type.id
    expected = {
        (owner, kind.name.replace("_", "")): count
        for owner, groups in ((1, scenario.allies), (2, scenario.enemies))
        for kind, count in groups
    }
    assert counts == expected
    own = [ids[kind.name] for kind, _ in scenario.allies]
    assert own == list(range(own[0], own[0] + len(own)))


def test_agents_are_named_by_type():
    agents = SCENARIOS["2s3z"].agents
    assert agents == ("stalker_0", "stalker_1", "zealot_0", "zealot_1", "zealot_2")


# ---- SMAC's options ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("obs_last_action", 1, "obs_last_action must be of type bool, got 1"),
        ("move_amount", 2.5, r"move_amount must be of type int, got 2\.5"),
        ("reward_win", "200", "reward_win must be of type float, got '200'"),
        ("move_amount", 0, "move_amount must be above 0, got 0"),
        ("reward_scale_rate", -1, "reward_scale_rate must be above 0, got -1"),
    ],
)
def test_wrong_values(name, value, message):
    with pytest.raises(ConfigError, match=message):
        Rules(**{name: value})


@pytest.mark.parametrize("rules", [{}, {"reward_sparse": True}, "sparse", 3])
@pytest.mark.parametrize(
    ("make", "name"), [(smac_task, "3m"), (smac_duel, "3m"), (smacv2_task, "terran_5_vs_5")]
)
def test_what_is_no_rules(make, name, rules):
    with pytest.raises(ConfigError, match=re.escape(f"type Rules, got {rules!r}")):
        make(name, rules=rules)


def test_a_class_with_what_is_no_rules():
    with pytest.raises(ConfigError, match=r"rules must be of type Rules, got \{\}"):

        class _(smac_task("3m")):
            rules: ClassVar = {}


def test_all_health_shows_the_own():
    assert Rules(obs_own_health=False).sees_own_health
    assert not Rules(obs_own_health=False, obs_all_health=False).sees_own_health


# ---- the scripted player -------------------------------------------------------------------------


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
    seen, _ = seen_by(battle, ground, 0.25)
    return [choose(one, Sizes(battle.scenario, battle.rules), ahead) for one in seen]


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


@pytest.mark.parametrize("sees_time", [False, True])
def test_the_dead_do_nothing_that_counts(begin, ground, seen, sees_time):
    battle = begin(marines(3) + enemies(3), rules=Rules(obs_timestep_number=sees_time))
    battle.update(seen(marines(2) + enemies(3)))
    *living, dead = chosen(battle, ground)
    assert living == [EAST, EAST]
    assert dead == 0 or (sees_time and not available(battle, ground)[2, dead])


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


# ---- duels of scenarios --------------------------------------------------------------------------


SIZE = (32, 32)
Placed = tuple[int, int, float, float]
"""A unit's tag, type, and place on the map."""


def of_both(
    first: Sequence[Placed], second: Sequence[Placed], player: int, **fields: Any
) -> list[raw_pb2.Unit]:
    """The units as a player sees them; their unit types are the map's own copies."""
    return [
        unit(tag, FIRST_COPY + kind, x, y, enemy=owner != player, **fields)
        for owner, units in ((1, first), (2, second))
        for tag, kind, x, y in units
    ]


def turned(units: Sequence[Placed]) -> list[Placed]:
    """The units in mirrored places, as the other player's units."""
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
        task = resolve_task(name)
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
        resolve_task("5m_vs_6m_duel")


def test_enemies_are_numbered_as_they_number_themselves(both):
    first, second = both(MARINES)
    assert first.allies.tags == second.enemies.tags == [2, 1, 3]
    assert second.allies.tags == first.enemies.tags == [102, 101, 103]


@pytest.mark.parametrize("units", [MARINES, TOGETHER])
def test_both_see_the_same(both, ground, units):
    told = []
    for battle, side in zip(both(units), (ground, ground.turned()), strict=True):
        arrays = available(battle, side), *seen_by(battle, side)
        told.append([array.tolist() for array in arrays])
    assert told[0] == told[1]


def test_types_have_smacs_places_for_enemies(both):
    """Unit types have the order of SMAC's enemy, in which zealots come before stalkers."""
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
