"""Command cards of Terrans: each ability of the real game is carried out, or refused."""

from __future__ import annotations

import pytest
from s2clientprotocol import common_pb2 as common
from s2clientprotocol import error_pb2 as error_pb
from sc2.dicts.unit_abilities import UNIT_ABILITIES
from sc2.ids.unit_typeid import UnitTypeId
from truth import cards

from sc2standin.data.abilities import ABILITIES, available_to, refused_to
from sc2standin.data.unit_types import TYPE_BY_NAME
from tests.standin.sessions import abilities, apart, step_until
from tests.standin.towns.conftest import saved

MARINE, MEDIVAC, MULE, SCV = 48, 54, 268, 45
BARRACKS, BUNKER, TECH_LAB, TURRET, FLYING = 21, 24, 37, 23, 46
ATTACK, SCAN_MOVE, SMART, STOP, RALLY = 3674, 19, 1, 3665, 3673
LOAD, UNLOAD_ALL, UNLOAD_AT, LOAD_ALL = 3668, 3664, 3669, 3663
SALVAGE, HALT, CANCEL, BUILD_BUNKER, BUILD_TECH_LAB = 32, 3660, 3659, 324, 3682
AFTERBURNERS, TRAIN_GHOST = 2116, 562
FIRST = (24.5, 45.5)
"""The place of the first structure of a town."""
TERRANS = [
    kind
    for kind in TYPE_BY_NAME.values()
    # python-sc2 gives a tech lab without a structure the research of all three kinds of it.
    if kind.race == common.Terran and kind.name != "TechLab"
]
NOT_HERE = {3684, 4128, 1535, 807}
"""Sprays, and research of later patches."""


@pytest.mark.parametrize("kind", TERRANS, ids=lambda kind: kind.name)
def test_a_card_has_all_that_python_sc2_lists(kind):
    listed = UNIT_ABILITIES.get(UnitTypeId(kind.id), set()) if kind.id in _IDS else set()
    assert {cards.general(one.value) for one in listed} - cards.ours(kind) <= NOT_HERE


_IDS = {one.value for one in UnitTypeId}


def test_an_ability_is_carried_out_or_refused():
    ids = [one.id for one in ABILITIES]
    assert len(ids) == len(set(ids))
    for kind in TYPE_BY_NAME.values():
        assert not set(available_to(kind)) & set(refused_to(kind)), kind.name


def test_medivacs_come_along_with_an_army_that_attacks(town):
    session = town()
    session.create((MARINE, 1, 30, 45), (MEDIVAC, 1, 30, 45), (MULE, 1, 30, 44))
    session.step()
    group = [session.one(MARINE), session.one(MEDIVAC), session.one(MULE)]
    assert session.order(group, ATTACK, (36, 45)) == error_pb.Success
    session.step()
    assert not session.observed().action_errors
    for kind in (MEDIVAC, MULE):
        assert [order.ability_id for order in session.one(kind).orders] == [SCAN_MOVE]
    step_until(session, lambda: session.one(MEDIVAC).pos.x > 34)


def test_a_medivac_heals_on_its_way(town):
    session = town()
    session.create((MARINE, 1, 33, 45), (MEDIVAC, 1, 30, 45))
    session.step()
    session.set_value(session.one(MEDIVAC), "Energy", 50)
    session.set_value(session.one(MARINE), "Life", 30)
    session.order(session.one(MEDIVAC), ATTACK, (45, 45))
    step_until(session, lambda: session.one(MARINE).health == 45)
    assert apart(session.one(MEDIVAC), session.one(MARINE)) < 7
    step_until(session, lambda: session.one(MEDIVAC).pos.x > 40)


@pytest.mark.parametrize(
    ("kind", "ability_id", "result"),
    [
        (MEDIVAC, LOAD, "CantLoadThatUnit"),
        (MEDIVAC, UNLOAD_AT, "NoCargoToUnload"),
        (MEDIVAC, AFTERBURNERS, "NotSupported"),
        (BUNKER, LOAD, "CantLoadThatUnit"),
        (BUNKER, UNLOAD_ALL, "NoCargoToUnload"),
        (BUNKER, ATTACK, "NotSupported"),
        (18, LOAD_ALL, "LoadAllNoTargetsFound"),
        (TURRET, ATTACK, "NotSupported"),
        (BARRACKS, TRAIN_GHOST, "NotSupported"),
        (FLYING, BUILD_TECH_LAB, "NotSupported"),
    ],
)
def test_an_ability_that_is_not_simulated_is_refused(town, kind, ability_id, result):
    session = town(*(() if kind == 18 else (kind,)))
    session.create((MARINE, 1, 30, 48))
    session.step()
    unit = session.units(kind)[0]
    assert session.order(unit, ability_id, target=session.one(MARINE)) == (
        error_pb.ActionResult.Value(result)
    )
    assert ability_id not in abilities(session, unit, free=True)


def test_a_bunker_has_a_rally_point(town):
    session = town(BUNKER)
    for ability_id, x in ((RALLY, 36), (SMART, 38)):
        assert session.order(session.one(BUNKER), ability_id, (x, 45)) == error_pb.Success
        session.step()
        assert [one.point.x for one in session.one(BUNKER).rally_targets] == [x]


def test_a_salvaged_bunker_gives_three_quarters_back(town):
    session = town(BUNKER, BUNKER)
    first, second = session.units(BUNKER)
    before = saved(session)
    assert SALVAGE in abilities(session, first)
    for _ in range(2):
        session.order(first, SALVAGE)
    session.step()
    (error,) = session.observed().action_errors
    assert (error.unit_tag, error.result) == (first.tag, error_pb.CantQueueThatOrder)
    assert session.order(first, SALVAGE) == error_pb.CantQueueThatOrder
    session.order(second, SALVAGE)
    session.step(79)
    assert len(session.units(BUNKER)) == 2
    session.kill([second])
    session.step(20)
    assert not session.units(BUNKER)
    assert saved(session) == (before[0] + 75, before[1])


def test_a_site_lets_its_worker_go(town):
    session = town(BARRACKS)
    scv = session.units(SCV)[0]
    session.order(scv, BUILD_BUNKER, (30.5, 45.5))
    step_until(session, lambda: session.units(BUNKER))
    assert session.order(session.one(BARRACKS), HALT) == error_pb.CantFindCancelOrder
    assert session.order(session.one(BUNKER), HALT) == error_pb.Success
    session.step()
    (builder,) = [one for one in session.units(SCV) if one.tag == scv.tag]
    assert not builder.orders
    halted = session.one(BUNKER).build_progress
    session.step(20)
    assert session.one(BUNKER).build_progress == halted
    assert session.order(session.one(BUNKER), HALT) == error_pb.CantFindCancelOrder


@pytest.mark.parametrize("both", [False, True])
def test_an_add_on_is_cancelled_by_itself(town, both):
    session = town(BARRACKS)
    before = saved(session)
    session.order(session.one(BARRACKS), BUILD_TECH_LAB)
    session.step(10)
    (lab,) = session.units(TECH_LAB)
    session.order([lab, session.one(BARRACKS)] if both else lab, CANCEL)
    session.step(2)
    assert not session.units(TECH_LAB)
    assert not session.one(BARRACKS).orders
    minerals, vespene = saved(session)
    assert (minerals, vespene) == (before[0] - 50 + 37, before[1] - 25 + 18)
