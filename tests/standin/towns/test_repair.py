"""SCVs and MULEs repair structures and mechanical units."""

from __future__ import annotations

import pytest
from s2clientprotocol import error_pb2 as error_pb
from s2clientprotocol import raw_pb2 as raw_pb

from tests.standin.sessions import abilities, apart, command, step_until

DEPOT, LOWERED, BARRACKS, LAB, ORBITAL, FACTORY = 19, 47, 21, 5, 132, 27
SCV, MULE, MARINE, HELLION, VIKING = 45, 268, 48, 53, 35
SMART, STOP, MOVE, REPAIR, REPAIR_SCV, REPAIR_MULE = 1, 4, 16, 3685, 316, 78
BUILD_DEPOT = 319
PLACE, BESIDE = (24.5, 45.5), (24.5, 42.0)


@pytest.fixture
def town(melee):
    """Begins a melee alone, with money, idle SCVs, a barracks of half a life, and an SCV at it."""

    def begin(kind: int = BARRACKS, money: int = 1000):
        session = melee(None)
        world = session.state.game.world
        for unit in world.owned_by(1):
            if unit.type.id == SCV:
                world.doomed.append(unit.tag)
        session.create((SCV, 1, *BESIDE), (kind, 1, *PLACE))
        session.step()
        session.state.game.world.minerals = session.state.game.economy.vespene = money
        harm(session, session.one(kind), 0.5)
        return session

    return begin


def harm(session, unit: raw_pb.Unit, share: float) -> None:
    """Leave a unit this share of its life."""
    living = session.state.game.world.by_tag[unit.tag]
    living.life = living.type.life * share


def test_a_structure_gets_its_life_back_for_a_quarter_of_its_cost(town):
    session = town()
    scv, barracks = session.one(SCV), session.one(BARRACKS)
    assert session.order(scv, REPAIR, target=barracks) == 1
    session.step()
    (order,) = session.one(SCV).orders
    assert (order.ability_id, order.target_unit_tag) == (REPAIR_SCV, barracks.tag)
    step_until(session, lambda: session.one(BARRACKS).health > 500)
    began_at = session.one(BARRACKS).health
    session.step(260)  # a quarter of 1040 loops, the time to build it
    assert session.one(BARRACKS).health - began_at == pytest.approx(250)
    assert session.money()[0] == pytest.approx(1000 - 150 / 16, abs=1)
    session.step(262)
    assert session.one(BARRACKS).health == 1000
    assert not session.one(SCV).orders
    assert session.money() == (1000 - 18, 1000)  # 150 · 0.25 · 0.5, for the share that was repaired


def test_several_workers_add_up_and_gas_is_paid(town):
    session = town(FACTORY)
    session.create(*[(SCV, 1, *BESIDE)] * 3)
    session.order(session.units(SCV), REPAIR, target=session.one(FACTORY))
    session.step(100)
    before = session.one(FACTORY).health
    session.step(20)
    assert session.one(FACTORY).health - before == pytest.approx(4 * 20 * 1250 / 960, abs=1)
    step_until(session, lambda: not any(unit.orders for unit in session.units(SCV)))
    assert session.one(FACTORY).health == 1250
    assert session.money() == (1000 - 18, 1000 - 12)


def test_a_right_click_repairs_what_is_damaged(town):
    session = town()
    scv, barracks = session.one(SCV), session.one(BARRACKS)
    session.order(scv, SMART, target=barracks)
    session.step()
    assert [order.ability_id for order in session.one(SCV).orders] == [REPAIR_SCV]
    session.order(scv, STOP)
    session.step(2)
    harm(session, barracks, 1.0)
    session.order(scv, SMART, target=barracks)
    session.step()
    assert [order.ability_id for order in session.one(SCV).orders] == [MOVE]


def test_a_worker_follows_a_unit_that_walks_and_one_that_flies(town):
    session = town()
    session.create((HELLION, 1, 30.0, 42.0), (VIKING, 1, 30.0, 50.0))
    for kind, life in ((HELLION, 90), (VIKING, 135)):
        scv, patient = session.one(SCV), session.one(kind)
        harm(session, patient, 0.1)
        session.act(
            command(scv, REPAIR, target=patient),
            command(patient, MOVE, (24.5, 50.0)),
        )
        step_until(session, lambda kind=kind, life=life: session.one(kind).health == life)
        scv, patient = session.one(SCV), session.one(kind)
        gap = apart(scv, patient)
        assert gap < scv.radius + patient.radius + 0.5
        session.step()
        assert not session.one(SCV).orders


def test_a_worker_stops_when_its_patient_is_gone(town):
    session = town()
    barracks = session.one(BARRACKS)
    session.order(session.units(SCV), REPAIR, target=barracks)
    session.step(100)
    session.kill(barracks)
    session.step(3)
    assert not session.one(SCV).orders


def test_repairs_end_with_the_money(town):
    session = town(money=2)
    session.order(session.units(SCV), REPAIR, target=session.one(BARRACKS))
    session.step()
    step_until(session, lambda: not session.one(SCV).orders)
    assert session.money() == (0, 2)
    # Three minerals are due after 80 of 1000 hit points: the third one is missing.
    assert session.one(BARRACKS).health == pytest.approx(580, abs=2)


def test_a_queued_order_follows_a_repair(town):
    session = town()
    scv, barracks = session.one(SCV), session.one(BARRACKS)
    harm(session, barracks, 0.99)
    session.order(scv, REPAIR, target=barracks)
    session.order(scv, MOVE, BESIDE, queued=True)
    step_until(session, lambda: session.one(BARRACKS).health == 1000)
    session.step(2)
    assert [order.ability_id for order in session.one(SCV).orders] == [MOVE]


def test_targets_that_cannot_be_repaired(town):
    session = town()
    session.create((MARINE, 1, 28.0, 50.0), (HELLION, 2, 29.0, 50.0), (DEPOT, 1, 31.0, 50.0))
    scv = session.one(SCV)
    harm(session, session.one(MARINE), 0.5)
    harm(session, session.one(HELLION), 0.5)
    for kind in (MARINE, HELLION, DEPOT):  # not a machine, an enemy's, and an undamaged one
        repair = command(scv, REPAIR, target=session.one(kind).tag)
        assert session.act(repair) == [error_pb.RequiresRepairTarget]
    harm(session, scv, 0.5)
    assert session.order(scv, REPAIR, target=scv) == error_pb.RequiresRepairTarget
    assert session.order(scv, REPAIR, target=1) == error_pb.MustTargetVisibleUnit
    marine = session.units(MARINE)
    assert session.order(marine, REPAIR, target=session.one(BARRACKS)) == error_pb.NotSupported
    session.order(scv, BUILD_DEPOT, (31.0, 46.0))
    step_until(session, lambda: len(session.units(DEPOT)) == 2)
    site = next(unit for unit in session.units(DEPOT) if unit.build_progress < 1)
    session.create((SCV, 1, *BESIDE))
    other = next(unit for unit in session.units(SCV) if unit.tag != scv.tag)
    repair = command(other, REPAIR, target=site)
    assert session.act(repair) == [error_pb.RequiresRepairTarget]


def test_a_mule_repairs_too_and_the_query_lists_it(town):
    session = town()
    session.create((MULE, 1, *BESIDE))
    for kind, ability in ((SCV, REPAIR_SCV), (MULE, REPAIR_MULE)):
        assert ability in abilities(session, session.one(kind))
    session.order(session.units(MULE), REPAIR, target=session.one(BARRACKS))
    session.step()
    assert [order.ability_id for order in session.one(MULE).orders] == [REPAIR_MULE]
    session.step(100)
    assert session.one(BARRACKS).health > 505


@pytest.mark.parametrize(("kind", "build_loops"), [(ORBITAL, 1600), (LOWERED, 480), (LAB, 400)])
def test_another_form_takes_as_long_as_the_first_one(town, kind, build_loops):
    session = town(kind)
    session.order(session.units(SCV), REPAIR, target=session.one(kind))
    half = session.one(kind).health
    step_until(session, lambda: session.one(kind).health > half)
    before = session.one(kind).health
    session.step(40)
    unit = session.one(kind)
    assert (unit.health - before) / unit.health_max == pytest.approx(40 / build_loops)
