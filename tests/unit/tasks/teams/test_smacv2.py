"""Tests SMACv2: the configuration of random teams, the drawn battles, and the scenarios."""

from __future__ import annotations

import copy
import pickle
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from s2clientprotocol import raw_pb2
from s2clientprotocol import sc2api_pb2 as sc_pb

from sc2pool.errors import ConfigError
from sc2pool.tasks.registry import SMACV2, resolve_task
from sc2pool.tasks.teams.battle import DRAWN, LOST, WON, Battle, Ground, available
from sc2pool.tasks.teams.battle_task import smac_task
from sc2pool.tasks.teams.features import Sizes
from sc2pool.tasks.teams.scenarios import (
    MARAUDER,
    MARINE,
    MEDIVAC,
    STALKER,
    ZEALOT,
    ZERGLING,
    Rules,
    UnitType,
)
from sc2pool.tasks.teams.smac_battle import smac_battle
from sc2pool.tasks.teams.smacv2 import (
    EXAMPLE_RULES,
    MAPS,
    SCENARIOS,
    RandomTeams,
    begun,
    copy_ids,
    create,
    example_config,
    observation_names,
    random_teams,
    smacv2_task,
    state_names,
)
from tests.unit.tasks.teams.conftest import observed, seen_by, unit

# ---- hand-built battles --------------------------------------------------------------------------


FIRST_COPY = 3000
NAMES = sorted(kind.name for kinds in MAPS.values() for kind in kinds)
COPIES = {kind: FIRST_COPY + NAMES.index(kind.name) for kinds in MAPS.values() for kind in kinds}


def ally(tag: int, kind: UnitType, x: float, y: float, **fields: Any) -> raw_pb2.Unit:
    return unit(tag, COPIES[kind], x, y, **fields)


def enemy(tag: int, kind: UnitType, x: float, y: float, **fields: Any) -> raw_pb2.Unit:
    return unit(tag, kind.id, x, y, enemy=True, **fields)


@pytest.fixture
def ground() -> Ground:
    """Ground of 32 by 32 cells, all of which units can walk on."""
    return Ground((32, 32), (32.0, 32.0), np.ones((32, 32), np.bool_), np.full((32, 32), 0.5))


@pytest.fixture
def begin() -> Callable[..., Battle]:
    """Begins a battle of some units."""

    def build(
        units: Sequence[raw_pb2.Unit],
        map_name: str = "10gen_terran",
        rules: Rules = EXAMPLE_RULES,
        *,
        observe: bool = True,
    ) -> Battle:
        n = sum(one.owner == 1 for one in units)
        config = example_config(map_name, n, len(units) - n)
        config["team_gen"]["observe"] = observe
        teams = random_teams("any", map_name, config)
        return begun(teams, rules, COPIES, observed(units))

    return build


# ---- configs and names of features ---------------------------------------------------------------


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
        ("team_gen.weights", [0, 0, 1], r"must leave types with at least 0\.001 of the weights"),
        ("team_gen.weights", [1e-9, 0, 1 - 1e-9], r"must leave types with at least 0\.001 of the"),
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


# ---- drawn teams ---------------------------------------------------------------------------------


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


class Answering:
    """Answers requests like a game whose last unit types are the map's copies."""

    def __init__(self, error: str = "") -> None:
        self.error, self.asked = error, []

    async def request(self, request: sc_pb.Request) -> sc_pb.Response:
        self.asked.append(request)
        reply = sc_pb.Response()
        if request.HasField("data"):
            for i in range(FIRST_COPY + 9):
                reply.data.units.add(unit_id=i)
        elif self.error:
            reply.error.append(self.error)
        return reply


async def test_copies_are_the_last_nine_types_asked_for_once():
    game = Answering()
    for _ in range(2):
        assert await copy_ids(game) == COPIES
    assert len(game.asked) == 1


async def test_units_are_asked_for_in_the_order_of_the_draw():
    teams = random_teams("any", "10gen_zerg", example_config("10gen_zerg", 2, 3))
    drawn = teams.draw(np.random.default_rng(1))
    game = Answering()
    await create(game, drawn, COPIES)
    (request,) = game.asked
    made = [command.create_unit for command in request.debug.debug]
    assert [one.owner for one in made] == [1, 1, 2, 2, 2]
    assert [one.unit_type for one in made[:2]] == [COPIES[kind] for kind in drawn.allies]
    assert [one.unit_type for one in made[2:]] == [kind.id for kind in drawn.enemies]
    places = np.concatenate([drawn.ally_places, drawn.enemy_places])
    np.testing.assert_allclose([(one.pos.x, one.pos.y) for one in made], places, rtol=1e-6)


async def test_a_game_that_refuses():
    teams = random_teams("any", "10gen_zerg", example_config("10gen_zerg", 1, 1))
    drawn = teams.draw(np.random.default_rng(1))
    with pytest.raises(ConfigError, match="does not create the units: Unknown unit type"):
        await create(Answering("Unknown unit type"), drawn, COPIES)


def test_agents_are_numbered_by_type_and_place_enemies_as_listed(begin):
    battle = begin(
        [
            ally(1, MEDIVAC, 1, 1),
            ally(2, MARINE, 5, 5),
            ally(3, MARAUDER, 9, 9),
            ally(4, MARINE, 4, 9),
            enemy(12, MEDIVAC, 20, 20),
            enemy(11, MARINE, 21, 20),
        ]
    )
    assert battle.allies.tags == [3, 4, 2, 1], "by the copies' numbers, not by SMACv2's"
    assert battle.allies.kind.tolist() == [1, 0, 0, 2]
    assert battle.enemies.tags == [12, 11]
    assert battle.enemies.kind.tolist() == [2, 0]


def test_no_battle_until_all_are_there_and_are_what_was_drawn():
    teams = random_teams("any", "10gen_terran", example_config("10gen_terran", 1, 1))
    both = [ally(1, MARINE, 1, 1), enemy(2, MARINE, 9, 9)]
    assert begun(teams, EXAMPLE_RULES, COPIES, observed(both)) is not None
    assert begun(teams, EXAMPLE_RULES, COPIES, observed(both[:1])) is None
    wrong = [ally(1, MARINE, 1, 1), enemy(2, ZEALOT, 9, 9)]
    assert begun(teams, EXAMPLE_RULES, COPIES, observed(wrong)) is None


RANGES = {
    **{"marine": (9, 5), "marauder": (10, 6), "medivac": (11, 4)},
    **{"stalker": (10, 6), "zealot": (9, 2), "colossus": (10, 7)},
    **{"zergling": (8, 2), "hydralisk": (9, 5), "baneling": (8, 2)},
}
"""SMACv2's ranges by unit: the range of sight, and the range of attack (at least 2)."""


@pytest.mark.parametrize("kind", COPIES, ids=lambda kind: kind.name)
def test_each_type_has_its_own_ranges(begin, ground, kind):
    map_name = {1: "10gen_terran", 2: "10gen_zerg", 3: "10gen_protoss"}[kind.race]
    sight, reach = RANGES[kind.name]
    other = {1: MARINE, 2: ZERGLING, 3: ZEALOT}[kind.race]
    own = [ally(1, kind, 10, 10), ally(2, other, 10 + reach, 10)]
    hostile = [enemy(3, other, 10, 10 + reach), enemy(4, other, 10, 10 + sight - 0.1)]
    battle = begin(own + hostile, map_name)
    me = battle.allies.tags.index(1)
    targets = available(battle, ground)[me, 6:].tolist()
    heals = kind is MEDIVAC
    assert targets == ([me == 1, False] if heals else [True, False])
    seen, _ = seen_by(battle, ground)
    sizes = Sizes(battle.scenario, battle.rules)
    of_enemies = seen[me, sizes.move : sizes.move + 2 * sizes.enemy].reshape(2, -1)
    np.testing.assert_allclose(of_enemies[:, 1], [reach / sight, 1 - 0.1 / sight], rtol=1e-5)
    battle.enemies.positions[1] = (10, 10 + sight)
    again, _ = seen_by(battle, ground)
    assert not again[me, sizes.move + sizes.enemy : sizes.move + 2 * sizes.enemy].any()


def test_without_unit_ranges_they_are_smacs(begin, ground):
    units = [ally(1, ZERGLING, 10, 10), enemy(2, ZERGLING, 16, 10)]
    battle = begin(units, "10gen_zerg", Rules())
    assert available(battle, ground)[0, 6:].tolist() == [True]
    assert battle.sight.tolist() == [9]


def test_an_agent_sees_its_place_and_only_if_allowed_its_allies_types(begin, ground):
    units = [ally(1, MARINE, 8, 24), ally(2, MEDIVAC, 9, 24), enemy(3, MARINE, 30, 2)]
    for observe in (True, False):
        battle = begin(units, observe=observe)
        (marine, _), whole = seen_by(battle, ground)
        assert marine[-5:].tolist() == [0.25, 0.75, 1, 0, 0]
        of_ally = marine[-6 - 8 : -6]
        assert of_ally[-3:].tolist() == [0, 0, float(observe)]
        assert whole[7 + 4 : 14].tolist() == [0, 0, 1], "the state has the types"


def test_medivacs_of_a_larger_team_heal_all_allies(begin, ground):
    units = [ally(i, MARINE, 10 + 0.1 * i, 10) for i in range(1, 4)]
    units += [ally(4, MEDIVAC, 10, 10), enemy(5, MARINE, 10, 12)]
    masks = available(begin(units), ground)
    assert masks.shape == (4, 6 + 4)
    assert masks[3, 6:].tolist() == [True, True, True, False]
    assert masks[0, 6:].tolist() == [True, False, False, False]
    assert begin(units).largest_reward == 10 + 200 + 50


# ---- scenarios -----------------------------------------------------------------------------------


SIZES = {
    # Numbers from SMACv2's get_env_info with its examples' options: observation, state, actions.
    "terran_5_vs_5": (82, 120, 11),
    "zerg_5_vs_5": (82, 120, 11),
    "protoss_5_vs_5": (92, 130, 11),
}


def test_every_scenario_has_a_name_in_the_registry():
    assert set(SMACV2) == set(SCENARIOS)
    for name in SMACV2:
        task = resolve_task(name)
        assert task.map_name == "32x32_flat"
        assert task.rules == EXAMPLE_RULES
        assert pickle.loads(pickle.dumps(task)) is task
    assert len(resolve_task("10gen_zerg").agents) == 10


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


def test_options_of_a_scenario_are_over_those_of_the_example_configs():
    given = {"obs_own_pos": False, "move_amount": 3}
    task = smac_battle("terran_5_vs_5", None, given, "7", None)
    assert task.rules == replace(EXAMPLE_RULES, **given)
    assert smac_battle("3m", None, given, "7", None).rules == Rules(**given)


MARINES = [ally(1, MARINE, 1, 1), ally(2, MEDIVAC, 2, 2), enemy(3, MARINE, 9, 9)]
ZEALOTS = [ally(1, ZEALOT, 1, 1), enemy(2, ZEALOT, 9, 9)]


@pytest.mark.parametrize(
    ("map_name", "units", "left", "outcome"),
    [
        ("10gen_terran", MARINES, [0, 1, 2], None),
        ("10gen_terran", MARINES, [1, 2], LOST),
        ("10gen_terran", MARINES, [0, 1], WON),
        ("10gen_terran", MARINES, [1], LOST),
        ("10gen_terran", MARINES, [], LOST),
        ("10gen_terran", MARINES, [0, 2], None),
        ("10gen_protoss", ZEALOTS, [0], WON),
        ("10gen_protoss", ZEALOTS, [], DRAWN),
    ],
)
def test_how_a_battle_ends(begin, map_name, units, left, outcome):
    battle = begin(units, map_name)
    battle.update(observed([units[i] for i in left]))
    task = smacv2_task(map_name)()
    task.begin(battle)
    assert task.outcome() == outcome


def test_recovered_shields_earn_nothing(begin):
    units = [ally(1, ZEALOT, 1, 1), enemy(2, ZEALOT, 9, 9, shield=10.0, shield_max=50.0)]
    battle = begin(units, "10gen_protoss")
    healed = [units[0], enemy(2, ZEALOT, 9, 9, shield=30.0, shield_max=50.0)]
    battle.update(observed(healed))
    assert battle.reward == 0
