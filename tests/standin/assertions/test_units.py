"""Assertions about units, structures, workers and production."""

from __future__ import annotations

import pytest
from s2clientprotocol import debug_pb2 as debug_pb
from s2clientprotocol import error_pb2 as error_pb

from tests.standin.assertions.conftest import of, put, units
from tests.standin.sessions import Wire, apart, command, place_of
from tests.support.duels import Pair

MOVE, ATTACK, PATROL, STOP, STIM, TRAIN_PROBE = 16, 23, 17, 4, 380, 1006
STIMPACK_BUFF = 27


@pytest.fixture
def field(begin) -> Wire:
    """A game in which nothing has happened yet."""
    return begin()


def test_p13_p14_units_are_created_killed_and_hurt_after_two_loops(field):
    before = len(of(field, "Marine"))
    put(field, ("Marine", 1, 44, 48, 5))
    marines = of(field, "Marine")
    assert len(marines) == before + 5
    killed, hurt, *_ = marines
    field.kill(killed)
    field.set_value(hurt, "Life", 5)
    field.step(2)
    left = {unit.tag: unit.health for unit in of(field, "Marine")}
    assert len(left) == before + 4
    assert killed.tag not in left
    assert left[hurt.tag] == 5


def test_p19_an_action_of_two_clients_takes_effect_after_two_loops(begin_duel, pair: Pair):
    host, _ = begin_duel()
    host.spawn(*units(("Marine", 1, 44, 48), ("Marine", 2, 40, 48)))
    pair.step(4)
    loop = host.observe().game_loop
    for player, wire in enumerate(pair.wires, 1):
        wire.order(of(wire, "Marine", player), MOVE, (42, 52))
    for passed in (1, 2):
        pair.step(1)
        for player, wire in enumerate(pair.wires, 1):
            seen = wire.observed()
            raw = [one for one in seen.actions if one.HasField("action_raw")]
            assert {one.game_loop for one in raw} == ({loop + 1} if passed == 2 else set())
            assert not seen.action_errors
            (marine,) = of(wire, "Marine", player)
            assert [order.ability_id for order in marine.orders] == [MOVE] * (passed == 2)


class TestPlaces:
    """P25: units are created at the given places, and walk or fly to their targets."""

    PLACES = (("Marine", 44, 44), ("Zealot", 40, 50), ("Banshee", 48, 52), ("Observer", 50, 46))

    def test_p25_they_are_exactly_there_and_flyers_are_higher(self, field):
        put(field, *((name, 1, x, y) for name, x, y in self.PLACES), loops=1)
        heights = {}
        for name, x, y in self.PLACES:
            (unit,) = of(field, name)
            assert place_of(unit) == pytest.approx((x, y), abs=1e-3)
            heights[name] = unit.pos.z
        assert min(heights["Banshee"], heights["Observer"]) > max(
            heights["Marine"], heights["Zealot"]
        )

    def test_p25_they_arrive_within_40_loops(self, field):
        put(field, *((name, 1, x, y) for name, x, y in self.PLACES), loops=1)
        for name, x, y in self.PLACES:
            field.order(of(field, name), MOVE, (x + 3, y))
        field.step(40)
        for name, x, y in self.PLACES:
            (unit,) = of(field, name)
            assert place_of(unit) == pytest.approx((x + 3, y), abs=0.05)

    def test_s29_a_hydralisk_walks_5_cells_and_faces_its_way(self, field):
        put(field, ("Hydralisk", 1, 48, 48), loops=1)
        field.order(of(field, "Hydralisk"), MOVE, (43, 48))
        field.step(100)
        (hydralisk,) = of(field, "Hydralisk")
        assert place_of(hydralisk) == pytest.approx((43, 48), abs=1e-3)
        assert 3.093 <= hydralisk.facing <= 3.191

    def test_s30_a_patrol_goes_to_the_target_and_back(self, field):
        put(field, ("Marine", 1, 44, 48), loops=1)
        field.order(of(field, "Marine"), PATROL, (46, 48))
        goals = set()
        for _ in range(80):
            field.step(1)
            (marine,) = of(field, "Marine")
            goal = marine.orders[0].target_world_space_pos
            goals.add((round(goal.x, 2), round(goal.y, 2)))
        assert goals == {(46, 48), (44, 48)}

    def test_s34_a_unit_that_is_stopped_has_moved_and_has_no_orders(self, field):
        put(field, ("Marine", 1, 44, 48), loops=1)
        field.order(of(field, "Marine"), MOVE, (54, 48))
        field.step(20)
        field.order(of(field, "Marine"), STOP)
        field.step(2)
        (marine,) = of(field, "Marine")
        assert 45 < marine.pos.x < 53
        assert not marine.orders
        field.step(20)
        (later,) = of(field, "Marine")
        assert place_of(later) == pytest.approx(place_of(marine), abs=0.5)


def test_s06_player_common_counts_what_is_created(field):
    field.step(1)
    before = field.observe().player_common
    created = units(
        ("Zealot", 1, 42, 48, 10),
        ("Probe", 1, 48, 42, 10),
        ("Pylon", 1, 40, 54),
        ("Pylon", 1, 44, 54),
        ("WarpGate", 1, 48.5, 54.5),
    )
    field.spawn(*created)
    field.step(10)
    seen = field.observe()
    after = seen.player_common
    growth = {"army_count": 10, "food_army": 20, "food_workers": 10, "idle_worker_count": 10}
    growth |= {"food_used": 30, "food_cap": 16, "warp_gate_count": 1}
    assert growth == {name: getattr(after, name) - getattr(before, name) for name in growth}
    sources = {(one.pos.x, one.pos.y, one.radius) for one in seen.raw_data.player.power_sources}
    assert sources == {(40, 54, 6.5), (44, 54, 6.5)}
    assert {one.tag for one in seen.raw_data.player.power_sources} == {
        unit.tag for unit in of(field, "Pylon")
    }


def test_s08_debug_gives_5000_of_each_resource(field):
    minerals, vespene = field.money()
    field.toggle(debug_pb.all_resources)
    field.step(2)
    after = field.money()
    assert minerals + 5000 <= after[0] <= minerals + 5020  # the workers gather some minerals, too
    assert after[1] == vespene + 5000


def test_s12_all_upgrades_twice_are_two_levels(field):
    put(field, ("Zealot", 1, 44, 48), ("Marine", 1, 40, 48))
    for _ in range(2):
        field.toggle(debug_pb.upgrade)
        field.step(2)
    (zealot,) = of(field, "Zealot")
    levels = (
        zealot.attack_upgrade_level,
        zealot.armor_upgrade_level,
        zealot.shield_upgrade_level,
    )
    assert levels == (2, 2, 2)
    (marine,) = of(field, "Marine")
    assert (marine.attack_upgrade_level, marine.armor_upgrade_level) == (2, 2)


def test_s25_a_medivac_heals_a_marauder(field):
    put(field, ("Medivac", 1, 44, 48), ("Marauder", 1, 46, 48))
    (marauder,), (medivac,) = of(field, "Marauder"), of(field, "Medivac")
    field.set_value(marauder, "Life", 50)
    field.set_value(medivac, "Energy", 200)
    field.step(250)
    (marauder,) = of(field, "Marauder")
    assert marauder.health == marauder.health_max


def test_s26_a_stimpack_is_a_buff_and_costs_life(field):
    field.toggle(debug_pb.tech_tree, debug_pb.upgrade)
    put(field, ("Marine", 1, 44, 48))
    field.order(of(field, "Marine"), STIM)
    field.step(4)
    (marine,) = of(field, "Marine")
    assert STIMPACK_BUFF in marine.buff_ids
    assert marine.health < marine.health_max


def test_s33_a_zealots_shield_is_set_and_recovers(field):
    put(field, ("Zealot", 1, 44, 48), loops=1)
    (zealot,) = of(field, "Zealot")
    assert zealot.shield == 50
    field.set_value(zealot, "Shields", 25)
    field.step(2)
    (zealot,) = of(field, "Zealot")
    assert 25 <= zealot.shield <= 25.2


def test_s36_a_zergling_becomes_a_baneling(field):
    field.toggle(debug_pb.free, debug_pb.tech_tree, debug_pb.fast_build)
    put(field, ("Zergling", 1, 44, 48))
    field.order(of(field, "Zergling"), 80)
    field.step(50)
    assert of(field, "Zergling") == []
    assert len(of(field, "Baneling")) == 1


def test_p29_what_works_is_active(begin):
    wire = begin()
    wire.toggle(debug_pb.all_resources, debug_pb.tech_tree)
    put(wire, ("Nexus", 1, 40.5, 40.5), ("Nexus", 1, 48.5, 54.5), loops=16)
    nexuses = of(wire, "Nexus")
    assert [one.is_active for one in nexuses] == [False, False]
    wire.order(nexuses[0], TRAIN_PROBE)
    wire.step(32)
    assert [one.is_active for one in of(wire, "Nexus")] == [True, False]
    gathering = [one for one in of(wire, "SCV") if one.orders]
    assert gathering
    assert all(one.is_active for one in gathering)


SMART, HALT, CANCEL, CANCEL_LAST, GATHER = 1, 3660, 3659, 3671, 3666
BUILD_COMMAND_CENTER, BUILD_FACTORY, TRAIN_MARINE = 318, 328, 560
TECH_LAB, RALLY_UNITS, SALVAGE = 3682, 3673, 32
HERE = (44.5, 48.5)
"""The centre of the map, with room for structures."""


@pytest.fixture
def rich(begin) -> Wire:
    """A town with all resources and without tech requirements."""
    wire = begin()
    wire.toggle(debug_pb.all_resources, debug_pb.tech_tree)
    wire.step(1)
    return wire


@pytest.fixture
def fast(rich) -> Wire:
    """The town of `rich`, in which units and structures are made in a second."""
    rich.toggle(debug_pb.fast_build)
    rich.step(1)
    return rich


@pytest.fixture
def barracks(fast) -> Wire:
    """A town with one barracks in the centre of the map."""
    put(fast, ("Barracks", 1, *HERE), ("SupplyDepot", 1, 40, 40), loops=4)
    return fast


def begin_site(wire: Wire, ability_id: int, name: str) -> None:
    """Let an SCV build in the centre of the map, and wait until the structure makes progress."""
    put(wire, ("SCV", 1, HERE[0] - 4, HERE[1]))
    builder = min(of(wire, "SCV"), key=lambda one: abs(one.pos.x - HERE[0] + 4))
    before = {unit.tag for unit in of(wire, name)}
    assert wire.order(builder, ability_id, HERE) == error_pb.Success
    for _ in range(20):
        wire.step(8)
        (site,) = [one for one in of(wire, name) if one.tag not in before] or [None]
        if site is not None and site.build_progress > 0.02:
            return
    raise AssertionError("nothing is built")


def site_of(wire: Wire, name: str) -> list:
    """The structures of a type that are not finished."""
    return [unit for unit in of(wire, name) if unit.build_progress < 1]


def test_s15_s16_s17_a_command_centre_is_halted_resumed_and_cancelled(rich):
    begin_site(rich, BUILD_COMMAND_CENTER, "CommandCenter")
    (site,) = site_of(rich, "CommandCenter")
    (builder,) = [one for one in of(rich, "SCV") if apart(one, site) < 4]
    rich.order(builder, HALT)
    rich.step(8)
    (site,) = site_of(rich, "CommandCenter")
    rich.step(50)
    (halted,) = site_of(rich, "CommandCenter")
    assert halted.build_progress == site.build_progress
    rich.order(builder, SMART, target=site)
    rich.step(50)
    (resumed,) = site_of(rich, "CommandCenter")
    assert resumed.build_progress > halted.build_progress
    rich.order(resumed, CANCEL)
    rich.step(10)
    assert site_of(rich, "CommandCenter") == []


def test_s19_a_salvaged_bunker_is_gone(rich):
    put(rich, ("Bunker", 1, *HERE))
    assert rich.order(of(rich, "Bunker"), SALVAGE) == error_pb.Success
    rich.step(200)
    assert of(rich, "Bunker") == []


def test_s22_a_factory_that_is_cancelled_is_gone(rich):
    put(rich, ("Barracks", 1, 36.5, 40.5), ("SupplyDepot", 1, 40, 36))
    begin_site(rich, BUILD_FACTORY, "Factory")
    rich.order(site_of(rich, "Factory"), CANCEL)
    rich.step(10)
    assert of(rich, "Factory") == []


def test_s20_a_tech_lab_belongs_to_the_structure_beside_it(barracks):
    barracks.order(of(barracks, "Barracks"), TECH_LAB)
    barracks.step(200)
    (structure,), (lab,) = of(barracks, "Barracks"), of(barracks, "BarracksTechLab")
    assert lab.build_progress == 1
    assert structure.add_on_tag == lab.tag


def test_s23_a_marine_is_taken_out_of_the_queue(rich):
    put(rich, ("Barracks", 1, *HERE))
    (structure,) = of(rich, "Barracks")
    rich.order(structure, TRAIN_MARINE)
    rich.step(10)
    (structure,) = of(rich, "Barracks")
    assert [order.ability_id for order in structure.orders] == [TRAIN_MARINE]
    rich.order(structure, CANCEL_LAST)
    rich.step(10)
    (structure,) = of(rich, "Barracks")
    assert not structure.orders
    assert not structure.is_active
    assert of(rich, "Marine") == []


def test_s31_s37_a_marine_is_trained_and_stands_on_the_rally_point(barracks):
    structures = of(barracks, "Barracks")
    rally = (HERE[0], HERE[1] - 5)
    barracks.act(command(structures, RALLY_UNITS, rally), command(structures, TRAIN_MARINE))
    barracks.step(150)
    (marine,) = of(barracks, "Marine")
    assert place_of(marine) == pytest.approx(rally, abs=1e-3)


def test_s28_a_worker_that_has_gathered_gets_an_order_to_return(begin):
    wire = begin()
    wire.step(1)
    (home,) = of(wire, "CommandCenter")
    fields = [unit for unit in wire.observe().raw_data.units if unit.mineral_contents]
    pairs = [(worker, one) for worker in of(wire, "SCV") for one in fields]
    worker, nearest = min(pairs, key=lambda pair: apart(*pair))
    wire.order(worker, GATHER, target=nearest)
    goals = set()
    for _ in range(150):
        wire.step(1)
        (worker,) = [one for one in of(wire, "SCV") if one.tag == worker.tag]
        goals |= {order.target_unit_tag for order in worker.orders}
    assert home.tag in goals
