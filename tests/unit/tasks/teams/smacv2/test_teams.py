"""What is drawn for battles, as often as the weights say, and who is then which agent."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from s2clientprotocol import sc2api_pb2 as sc_pb

from sc2pool.errors import ConfigError
from sc2pool.tasks.teams.smac.actions import available
from sc2pool.tasks.teams.smac.features import Sizes, observations, state
from sc2pool.tasks.teams.smac.rules import Rules
from sc2pool.tasks.teams.smac.scenarios import MARAUDER, MARINE, MEDIVAC, STALKER, ZEALOT, ZERGLING
from sc2pool.tasks.teams.smacv2.config import example_config, random_teams
from sc2pool.tasks.teams.smacv2.task import EXAMPLE_RULES
from sc2pool.tasks.teams.smacv2.teams import RandomTeams, begun, copy_ids, create
from tests.unit.tasks.teams.smac.conftest import observed
from tests.unit.tasks.teams.smacv2.conftest import COPIES, FIRST_COPY, ally, enemy


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
    """Answers requests as a game whose types end with the copies."""

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
    "marine": (9, 5),
    "marauder": (10, 6),
    "medivac": (11, 4),
    "stalker": (10, 6),
    "zealot": (9, 2),
    "colossus": (10, 7),
    "zergling": (8, 2),
    "hydralisk": (9, 5),
    "baneling": (8, 2),
}
"""SMACv2's ranges of sight and attack, the latter at least 2."""


@pytest.mark.parametrize("kind", COPIES, ids=lambda kind: kind.name)
def test_each_type_has_its_own_ranges(begin, ground, kind):
    map_name = {1: "10gen_terran", 2: "10gen_zerg", 3: "10gen_protoss"}[kind.race]
    sight, reach = RANGES[kind.name]
    other = {1: MARINE, 2: ZERGLING, 3: ZEALOT}[kind.race]
    own = [ally(1, kind, 10, 10), ally(2, other, 10 + reach, 10)]
    hostile = [enemy(3, other, 10, 10 + reach), enemy(4, other, 10, 10 + sight - 0.1)]
    battle = begin(own + hostile, map_name)
    me = battle.allies.tags.index(1)
    masks = available(battle, ground)
    targets = masks[me, 6:].tolist()
    heals = kind is MEDIVAC
    assert targets == ([me == 1, False] if heals else [True, False])
    last = np.zeros((2, masks.shape[1]), np.float32)
    seen = observations(battle, ground, masks, last, 0.0)
    sizes = Sizes(battle.scenario, battle.rules)
    of_enemies = seen[me, sizes.move : sizes.move + 2 * sizes.enemy].reshape(2, -1)
    np.testing.assert_allclose(of_enemies[:, 1], [reach / sight, 1 - 0.1 / sight], rtol=1e-5)
    battle.enemies.positions[1] = (10, 10 + sight)
    again = observations(battle, ground, masks, last, 0.0)
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
        masks = available(battle, ground)
        last = np.zeros((2, masks.shape[1]), np.float32)
        marine = observations(battle, ground, masks, last, 0.0)[0]
        assert marine[-5:].tolist() == [0.25, 0.75, 1, 0, 0]
        of_ally = marine[-6 - 8 : -6]
        assert of_ally[-3:].tolist() == [0, 0, float(observe)]
        whole = state(battle, ground, last, 0.0, masks)
        assert whole[7 + 4 : 14].tolist() == [0, 0, 1], "the state has the types"


def test_medivacs_of_a_larger_team_heal_all_allies(begin, ground):
    units = [ally(i, MARINE, 10 + 0.1 * i, 10) for i in range(1, 4)]
    units += [ally(4, MEDIVAC, 10, 10), enemy(5, MARINE, 10, 12)]
    masks = available(begin(units), ground)
    assert masks.shape == (4, 6 + 4)
    assert masks[3, 6:].tolist() == [True, True, True, False]
    assert masks[0, 6:].tolist() == [True, False, False, False]
    assert begin(units).largest_reward == 10 + 200 + 50
