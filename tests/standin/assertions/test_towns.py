"""Assertions about structures, workers and production."""

from __future__ import annotations

import pytest
from s2clientprotocol import debug_pb2 as debug_pb
from s2clientprotocol import error_pb2 as error_pb

from tests.standin.assertions.conftest import cheat, of, units
from tests.standin.sessions import Wire, apart, command, place_of

SMART, HALT, CANCEL, CANCEL_LAST, GATHER = 1, 3660, 3659, 3671, 3666
BUILD_COMMAND_CENTER, BUILD_FACTORY, TRAIN_MARINE = 318, 328, 560
TECH_LAB, RALLY_UNITS, SALVAGE = 3682, 3673, 32
HERE = (44.5, 48.5)
"""The middle of the map, where structures find room."""


@pytest.fixture
def rich(begin) -> Wire:
    """A town that may build everything, in a second."""
    wire = begin()
    cheat(wire, debug_pb.all_resources, debug_pb.tech_tree)
    wire.step(1)
    return wire


@pytest.fixture
def fast(rich) -> Wire:
    """The same, in which everything is built in a second."""
    cheat(rich, debug_pb.fast_build)
    rich.step(1)
    return rich


@pytest.fixture
def barracks(fast) -> Wire:
    """A town with one barracks in the middle of the map."""
    fast.spawn(*units(("Barracks", 1, *HERE), ("SupplyDepot", 1, 40, 40)))
    fast.step(4)
    return fast


def begin_site(wire: Wire, ability_id: int, name: str) -> None:
    """Let an SCV that stands there build, and wait until the structure has begun to grow."""
    wire.spawn(*units(("SCV", 1, HERE[0] - 4, HERE[1])))
    wire.step(2)
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
    rich.spawn(*units(("Bunker", 1, *HERE)))
    rich.step(2)
    assert rich.order(of(rich, "Bunker"), SALVAGE) == error_pb.Success
    rich.step(200)
    assert of(rich, "Bunker") == []


def test_s22_a_factory_that_is_cancelled_is_gone(rich):
    rich.spawn(*units(("Barracks", 1, 36.5, 40.5), ("SupplyDepot", 1, 40, 36)))
    rich.step(2)
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
    rich.spawn(*units(("Barracks", 1, *HERE)))
    rich.step(2)
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
