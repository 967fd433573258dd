"""Tests the Terrans' command cards, units that change their mode, and structures that fight.

The stand-in must carry out or refuse each ability of the real game.
"""

from __future__ import annotations

import pytest
from s2clientprotocol import common_pb2 as common
from s2clientprotocol import debug_pb2 as debug_pb
from s2clientprotocol import error_pb2 as error_pb
from sc2.dicts.unit_abilities import UNIT_ABILITIES
from sc2.ids.unit_typeid import UnitTypeId
from truth import cards

from sc2standin.data.abilities import ABILITIES, available_to, refused_to
from sc2standin.data.unit_types.files import TYPE_BY_NAME
from tests.standin.sessions import PLACES, abilities, apart, cheat, saved, step_until

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
    # python-sc2 lists the research of all three kinds of tech lab for a lab without a structure.
    if kind.race == common.Terran and kind.name != "TechLab"
]
NOT_HERE = {3684, 4128, 1535, 807}
"""Abilities for sprays, and for research of later patches."""


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


@pytest.mark.parametrize("named", [[TECH_LAB], [BARRACKS], [TECH_LAB, BARRACKS]])
def test_an_add_on_is_cancelled_by_itself_or_its_structure(town, named):
    session = town(BARRACKS)
    before = saved(session)
    session.order(session.one(BARRACKS), BUILD_TECH_LAB)
    session.step(10)
    assert session.order([session.one(one) for one in named], CANCEL) == 1
    session.step(2)
    assert not session.units(TECH_LAB)
    barracks = session.one(BARRACKS)
    assert not barracks.orders
    assert not barracks.HasField("add_on_tag")
    minerals, vespene = saved(session)
    assert (minerals, vespene) == (before[0] - 50 + 37, before[1] - 25 + 18)


CENTER, BAY = 18, 22
TOWER, ACADEMY, ARMORY, FACTORY, FORTRESS = 25, 26, 29, 27, 130
SIEGED, TANK, LANDED, VIKING, HELLION, HELLBAT = 32, 33, 34, 35, 53, 484
MARAUDER = 51
DARK_TEMPLAR, ZEALOT, BANSHEE = 76, 73, 55
SIEGE, UNSIEGE, ASSAULT, FIGHTER = 388, 390, 403, 405
TO_HELLBAT, TO_HELLION, TRAIN_HELLBAT = 1998, 1978, 596
TO_FORTRESS, TRAIN_SCV, STOP_STOP, MOVE, ATTACK_ATTACK = 1450, 524, 4, 16, 23
NEEDS = error_pb.TechRequirementsNotMet


def test_a_tank_sieges_and_goes_on(town):
    session = town()
    session.create((TANK, 1, 30.0, 46.0))
    tank = session.one(TANK)
    assert SIEGE in abilities(session, tank)
    assert session.order(tank, SIEGE) == 1
    session.step(40)
    assert [order.ability_id for order in session.one(TANK).orders] == [SIEGE]
    assert session.order(tank, STOP_STOP) == 1
    session.step(40)
    sieged = session.one(SIEGED)
    assert (sieged.tag, sieged.pos.x, len(sieged.orders)) == (tank.tag, 30.0, 0)
    assert not abilities(session, sieged) & {MOVE, SIEGE}
    assert session.order(sieged, MOVE, (34.0, 46.0)) == error_pb.NotSupported
    assert session.order(sieged, ATTACK_ATTACK, (34.0, 46.0)) == 1
    session.step(20)
    assert (session.one(SIEGED).pos.x, len(session.one(SIEGED).orders)) == (30.0, 0)
    assert session.order(sieged, UNSIEGE) == 1
    session.step(2)
    assert session.order(sieged, 1, (34.0, 46.0), queued=True) == 1
    session.step(140)
    assert session.one(TANK).pos.x == 34.0


def test_a_sieged_tank_fires_far_and_not_near(town):
    session = town(disable_fog=True)
    session.create((SIEGED, 1, 24.0, 48.0), (BUNKER, 2, 37.5, 48.5))
    session.step(5)
    assert session.one(BUNKER).health == 400 - 69
    session.kill(session.one(BUNKER))
    session.step(60)
    session.create((ZEALOT, 2, 24.0, 50.0))
    session.step(80)
    assert session.one(ZEALOT).shield == 50
    assert session.one(SIEGED).health < 175


def test_a_blast_hits_all_around_its_target(town):
    session = town(disable_fog=True)
    session.create((SIEGED, 1, 24.0, 48.0))
    session.create((MULE, 2, 33.0, 48.0), (MULE, 2, 33.9, 48.0), (MULE, 2, 34.3, 48.7))
    session.create((MULE, 2, 36.0, 48.0), (MULE, 1, 33.0, 49.2))
    session.step(5)
    assert [one.health for one in session.units(MULE)] == [20, 40, 50, 60, 50]


def test_vikings_land_and_take_off(town):
    session = town(disable_fog=True)
    session.create((VIKING, 1, 30.0, 46.0), (SCV, 2, 38.0, 46.0))
    viking = session.one(VIKING)
    assert session.order(viking, ASSAULT) == 1
    session.step(44)
    landed = session.one(LANDED)
    assert (landed.tag, landed.is_flying) == (viking.tag, False)
    assert session.order(landed, ATTACK_ATTACK, (38.0, 46.0)) == 1
    session.step(120)
    assert len(session.units(SCV)) == 12
    assert session.order(landed, FIGHTER) == 1
    session.step(44)
    assert session.one(VIKING).is_flying


def test_hellbats_need_an_armory(town):
    session = town(FACTORY)
    session.create((HELLION, 1, 30.0, 46.0))
    hellion = session.one(HELLION)
    assert session.order(hellion, TO_HELLBAT) == NEEDS
    assert session.order(session.units(FACTORY), TRAIN_HELLBAT) == NEEDS
    session.create((ARMORY, 1, *PLACES[2]))
    session.set_value(hellion, "Life", 60)
    assert session.order(hellion, TO_HELLBAT) == 1
    session.step(70)
    hellbat = session.one(HELLBAT)
    assert (hellbat.tag, hellbat.health, hellbat.health_max) == (hellion.tag, 90, 135)
    assert session.order(hellion.tag, TO_HELLION) == 1
    session.step(70)
    hellion = session.one(HELLION)
    assert (hellion.tag, hellion.health, hellion.health_max) == (hellbat.tag, 60, 90)
    session.kill(hellion)
    session.step(2)
    assert session.order(session.units(FACTORY), TRAIN_HELLBAT) == 1
    session.step(490)
    assert session.one(HELLBAT)


def test_a_planetary_fortress_trains_and_fires(town):
    session = town(disable_fog=True)
    center = session.one(CENTER)
    assert session.order(center, TO_FORTRESS) == NEEDS
    session.create((BAY, 1, *PLACES[0]))
    vespene = session.money()[1]
    cheat(session, debug_pb.fast_build)
    assert session.order(center, TO_FORTRESS) == 1
    session.step(20)
    cheat(session, debug_pb.fast_build)
    assert session.money()[1] == vespene - 150
    fortress = session.one(FORTRESS)
    assert fortress.tag == center.tag
    session.create((MARAUDER, 2, fortress.pos.x + 6, fortress.pos.y))
    assert session.order(fortress, TRAIN_SCV) == 1
    session.step(280)
    assert not session.units(MARAUDER)
    assert len([one for one in session.units(SCV) if one.alliance == 1]) == 13
    assert session.one(FORTRESS).assigned_harvesters >= 12


def test_an_scv_builds_what_a_town_is_guarded_with(town):
    session = town(BARRACKS)
    workers = session.units(SCV)
    assert session.order(workers[:1], 323, (36.0, 48.0)) == NEEDS
    session.create((BAY, 1, *PLACES[2]))
    asked = ((323, (36.0, 48.0)), (324, PLACES[1]), (326, (35.5, 50.5)), (327, PLACES[4]))
    for worker, (ability, place) in zip(workers, asked, strict=False):
        assert session.order(worker, ability, place) == 1
        session.step()
    step_until(session, lambda: session.units(TURRET))
    session.create((BANSHEE, 2, 38.0, 48.0), (DARK_TEMPLAR, 2, 40.0, 48.0))
    session.step(20)
    assert session.one(BANSHEE).health == 140
    assert not session.units(DARK_TEMPLAR)
    session.kill(one for one in session.observe().raw_data.units if one.owner == 2)
    step_until(
        session,
        lambda: all(
            [one.build_progress for one in session.units(kind)] == [1.0]
            for kind in (TURRET, BUNKER, TOWER, ACADEMY)
        ),
    )
    session.create((BANSHEE, 2, 38.0, 48.0), (DARK_TEMPLAR, 2, 40.0, 48.0))
    session.step(12)
    assert session.one(BANSHEE).health < 140
    assert session.units(DARK_TEMPLAR)
