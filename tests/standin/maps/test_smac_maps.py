"""SMAC's scenarios for two players, and SMACv2's map.

The maps for two players derive from those for one player, and must give no side an advantage. To
check this, a fight is played for a while with random cooldowns. Then the fight is continued twice
without randomness: as it is, and with the sides exchanged and the map rotated by 180°. The two
continuations must be the same.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from random import Random

import numpy as np
import pytest
from s2clientprotocol import debug_pb2 as debug_pb
from s2clientprotocol import sc2api_pb2 as sc_pb

from sc2standin.data.abilities import OrderKind
from sc2standin.map_reader.fields import ScenarioError
from sc2standin.map_reader.real_map import read_scenario
from sc2standin.map_reader.scenario import Hunt, Scenario
from sc2standin.simulation import orders
from sc2standin.simulation.game import Game
from sc2standin.simulation.units import Order, Unit
from tests.peers.run_smac import OF_SMACV2, differences
from tests.standin.maps.test_smac import COPY, MAPS, begin_on, real_map, team
from tests.standin.sessions import against, apart

FILES = sorted(MAPS.with_name("smac_duels").iterdir())
ATTACK = 23
DUELS = pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)


def duel(name: str) -> sc_pb.LocalMap:
    return sc_pb.LocalMap(map_path=f"SMAC_Duels/{name}.SC2Map")


@DUELS
def test_a_file_names_its_original_and_nothing_more(file):
    content = json.loads(file.read_text())
    assert content.pop("format") == "sc2pool-standin-scenario/1"
    assert content == {"name": file.stem, "duel_of": file.stem.removesuffix("_duel")}


@DUELS
def test_both_sides_have_the_teams_units_and_half_a_turn_changes_nothing(file):
    duel = read_scenario(file.read_bytes())
    original = read_scenario((MAPS / f"{file.stem.removesuffix('_duel')}.SC2Map").read_bytes())
    assert (duel.name, duel.players) == (file.stem, 2)
    assert (duel.size, duel.time_limit_loops) == (original.size, original.time_limit_loops)
    team = [group for group in original.units if group.owner == 1]
    assert [group for group in duel.units if group.owner == 1] == team
    others = [group for group in duel.units if group.owner == 2]
    assert [(one.type, one.count) for one in others] == [(one.type, one.count) for one in team]
    assert original.ground is not None and duel.ground is not None
    assert np.array_equal(duel.ground.walkable, original.ground.walkable)
    for grid in (duel.ground.walkable, duel.ground.height):
        np.testing.assert_array_equal(grid, np.flip(grid), "neither side has better ground")


def places(units: list, owner: int) -> list[tuple[int, float, float]]:
    return sorted((u.unit_type, u.pos.x, u.pos.y) for u in units if u.owner == owner)


@pytest.mark.parametrize("name", ["8m_duel", "1c3s5z_duel", "MMM_duel", "bane_vs_bane_duel"])
def test_units_stand_as_after_half_a_turn(pair, name):
    pair.begin(duel(name))
    first, second = pair.observe()
    units = list(first.observation.raw_data.units)
    turned = sorted((kind, 32 - x, 32 - y) for kind, x, y in places(units, 2))
    assert places(units, 1) == turned
    assert {unit.unit_type for unit in units} <= set(COPY.values())
    seen_by_second = list(second.observation.raw_data.units)
    for owner in (1, 2):
        assert places(seen_by_second, owner) == places(units, owner), "there is no fog"


def test_nobody_acts_without_an_order_and_all_act_on_one(pair):
    pair.begin(duel("3m_duel"))
    before = [list(one.observation.raw_data.units) for one in pair.observe()]
    pair.step(80)
    after = [list(one.observation.raw_data.units) for one in pair.observe()]
    assert places(before[0], 1) + places(before[0], 2) == places(after[0], 1) + places(after[0], 2)
    for wire, units, owner in zip(pair.wires, after, (1, 2), strict=True):
        own = [unit for unit in units if unit.owner == owner]
        target = next(unit for unit in units if unit.owner != owner)
        assert wire.order(own, ATTACK, target=target) == 1
    pair.step(160)
    lives = [sum(u.health for u in one.observation.raw_data.units) for one in pair.observe()]
    assert lives[0] == lives[1] < 6 * 45


def test_they_are_installed(installation):
    placed = installation / "Maps" / "SMAC_Duels"
    assert {path.stem for path in placed.iterdir()} == {file.stem for file in FILES}


KEPT = ("held_up", "turn", "life", "shields", "energy", "hit_at", "ready_at")
Number = tuple[int, int]
"""A unit's owner, and the unit's number among the owner's units at the start."""


class Middling(Random):
    """A random number generator that always gives the same number."""

    def random(self) -> float:
        return 0.5


def begun(scenario: Scenario, seed: int) -> tuple[Game, dict[int, Number]]:
    """A new battle, and the number of each unit by the unit's tag."""
    game = Game(
        scenario,
        np.random.SeedSequence(seed),
        **{"fog": False, "loops_before": 0, "clients": frozenset({1, 2})},
    )
    return game, {u.tag: (p, i) for p in (1, 2) for i, u in enumerate(game.world.owned_by(p))}


def play(game: Game, loops: int) -> None:
    """Each unit attacks its nearest enemy, or heals the nearest ally that is hurt."""
    for unit in list(game.world.units):
        heals = unit.type.heals is not None
        others = [
            other
            for other in game.world.units
            if other is not unit and (other.owner == unit.owner) == heals
            if not heals or (other.life < other.type.life and other.type.heals is None)
        ]
        if others:
            target = min(others, key=lambda o: round(math.hypot(o.x - unit.x, o.y - unit.y), 6))
            kind = OrderKind.HEAL if heals else OrderKind.ATTACK
            order = Order(kind, target.x, target.y, target.tag)
            game.ask(
                lambda u=unit, o=order: orders.give(game.world, u, o, queued=False), unit.owner
            )
    game.advance(loops, lambda: False)


def continued(
    game: Game, numbers: dict[int, Number], scenario: Scenario, *, turned: bool
) -> tuple[Game, dict[int, Number]]:
    """A copy of the battle that continues without randomness, as it is or with exchanged sides."""
    other, other_numbers = begun(scenario, 0)
    tags = {number: tag for tag, number in other_numbers.items()}
    width, height = scenario.size

    def tag_of(tag: int) -> int:
        if tag not in numbers:
            return 0
        owner, place = numbers[tag]
        return tags[3 - owner if turned else owner, place]

    def point(x: float, y: float) -> tuple[float, float]:
        return (width - x, height - y) if turned else (x, y)

    copies: list[Unit] = []
    for unit in game.world.units:
        copy = other.world.by_tag[tag_of(unit.tag)]
        copies.append(copy)
        for name in KEPT:
            setattr(copy, name, getattr(unit, name))
        copy.x, copy.y = point(unit.x, unit.y)
        copy.engaged, copy.noticed = tag_of(unit.engaged), tag_of(unit.noticed)
        x, y = point(unit.order.x, unit.order.y)
        copy.order = unit.order._replace(x=x, y=y, target_tag=tag_of(unit.order.target_tag))
    other.world.bury([unit for unit in other.world.units if unit not in copies])
    other.world.loop = game.world.loop
    other.world.orders_changed()
    other.world.chance = Middling()
    return other, other_numbers


def seen(
    game: Game, numbers: dict[int, Number], scenario: Scenario, *, turned: bool
) -> Iterator[tuple[Number, list[float]]]:
    """Each unit's state, with the unit's number before sides were exchanged."""
    width, height = scenario.size
    for unit in game.world.units:
        owner, place = numbers[unit.tag]
        x, y = (width - unit.x, height - unit.y) if turned else (unit.x, unit.y)
        number = (3 - owner if turned else owner, place)
        yield number, [x, y, unit.life, unit.shields, unit.energy]


@pytest.mark.parametrize("name", ["3m", "MMM", "2s3z", "1c3s5z"])
@pytest.mark.parametrize("seed", [1, 2])
def test_exchanged_sides_fight_in_the_same_way(name: str, seed: int) -> None:
    file = MAPS.with_name("smac_duels") / f"{name}_duel.SC2Map"
    scenario = read_scenario(file.read_bytes())
    game, numbers = begun(scenario, seed)
    fought = 0
    while all(game.world.owned_by(player) for player in (1, 2)) and game.world.loop < 400:
        play(game, 13)
        both = []
        for turned in (False, True):
            other, other_numbers = continued(game, numbers, scenario, turned=turned)
            play(other, 13)
            both.append(dict(seen(other, other_numbers, scenario, turned=turned)))
        assert both[0].keys() == both[1].keys()
        for number, values in both[0].items():
            assert both[1][number] == pytest.approx(values, abs=1e-6)
        fought += any(unit.life < unit.type.life for unit in game.world.units)
    assert fought > 5


FLAT = OF_SMACV2 / "32x32_flat.SC2Map"
MARINE, MARAUDER, MEDIVAC, BANELING = 48, 51, 54, 9
COPIES = sorted(COPY)
"""The map's own unit types in SMACv2's order; they are the last types in the game's data."""


def begin(session, content: bytes | None = None, seed: int = 1) -> None:
    begin_on(session, content or FLAT.read_bytes(), against(sc_pb.VeryHard), seed)


def copy(session, name: str) -> int:
    """The id of a copied type, found as SMACv2 finds it."""
    asked = session.ask(data=sc_pb.RequestData(unit_type_id=True))
    return len(asked.data.units) - len(COPIES) + COPIES.index(name)


def create(session, *units: tuple[int, int, float, float]) -> None:
    """Create units in the next loop; each unit is given as type, owner, x and y."""
    session.create(*units)
    session.step()


def test_the_last_nine_types_are_the_copies(offline):
    begin(offline)
    units = offline.ask(data=sc_pb.RequestData(unit_type_id=True)).data.units
    assert [unit.name for unit in units[-9:]] == [f"{name}_RL" for name in COPIES]
    assert [unit.unit_id for unit in units] == list(range(len(units)))


def test_the_map_is_empty_and_goes_on_without_units(offline):
    begin(offline)
    assert not offline.observe().raw_data.units
    create(offline, (copy(offline, "Marine"), 1, 10, 10), (MARINE, 2, 25, 25))
    offline.kill(offline.observe().raw_data.units)
    offline.step(2)
    assert not offline.observe().raw_data.units, "nothing begins anew"
    assert offline.state.status.name == "IN_GAME"


def test_enemies_attack_the_nearest_within_half_a_second(offline):
    begin(offline)
    marine = copy(offline, "Marine")
    create(offline, (marine, 1, 4, 16), (marine, 1, 30, 30), (MARINE, 2, 28, 16))
    (enemy,) = team(offline, 2)
    near = min(team(offline, 1), key=lambda unit: apart(unit, enemy))
    offline.step(8)
    (moved,) = team(offline, 2)
    assert apart(moved, near) < apart(enemy, near), "it comes"
    while len(team(offline, 1)) > 1:
        offline.step(8)
        assert offline.state.playing().world.loop < 600
    assert team(offline, 1)[0].pos.x < 5, "the nearer one was killed first"
    while team(offline, 1):
        offline.step(8)
        assert offline.state.playing().world.loop < 1600
    assert team(offline, 2), "the team only fires when it is ordered to"


def test_who_cannot_hit_the_nearest_waits(offline):
    begin(offline)
    create(
        offline,
        *[(copy(offline, "Medivac"), 1, 16, 16), (copy(offline, "Marine"), 1, 2, 2)],
        *[(MARAUDER, 2, 30, 30), (MEDIVAC, 2, 29, 29)],
    )
    before = [(unit.pos.x, unit.pos.y) for unit in team(offline, 2)]
    offline.step(80)
    assert [(unit.pos.x, unit.pos.y) for unit in team(offline, 2)] == before


def test_units_are_those_of_smacs_maps(offline):
    begin(offline)
    create(offline, (BANELING, 2, 16, 16))
    (made,) = offline.state.playing().world.units
    assert made.type.name == "Baneling_Liberty"
    answer = offline.ask(
        debug=sc_pb.RequestDebug(
            debug=[debug_pb.DebugCommand(create_unit=debug_pb.DebugCreateUnit(unit_type=4321))]
        )
    )
    assert "Unknown unit type 4321" in answer.error[0]


SCRIPT = b"""
bool gt_Attack_Func (bool testConds, bool runActions) {
    UnitIssueOrder(one, OrderTargetingUnit(AbilityCommand("attack", 0), UnitGroupClosestToPoint(
all, UnitGetPosition(one))), c_orderQueueReplace);
}
void gt_Attack_Init () {
    gt_Attack = TriggerCreate("gt_Attack_Func");
    TriggerAddEventTimePeriodic(gt_Attack, PERIOD, c_timeGame);
}
"""


def test_the_real_map_reads_as_ours(offline):
    flat = np.full((32, 32), 64, "<u2").tobytes(), np.full((32, 32), 2, "u1").tobytes()
    header = b"CLIF" + bytes(4) + (32).to_bytes(4, "little") * 2 + bytes(16)
    flags = b"LFCT" + bytes(20) + (32).to_bytes(4, "little") * 2
    content = real_map(
        MapScript=SCRIPT.replace(b"PERIOD", b"0.5"),
        Objects=b"<PlacedObjects/>",
        t3SyncCliffLevel=header + flat[0],
        t3CellFlags=flags + flat[1],
    )
    assert differences(read_scenario(content), read_scenario(FLAT.read_bytes())) == []
    assert read_scenario(content).rules == (Hunt(8),)
    begin(offline, content)
    create(offline, (copy(offline, "Marine"), 1, 10, 10))


@pytest.mark.parametrize("period", [b"0.01", b"1000"])
def test_a_period_that_cannot_be_says_why(period):
    with pytest.raises(ScenarioError, match="look for a target every"):
        read_scenario(real_map(MapScript=SCRIPT.replace(b"PERIOD", period)))
