"""Tests the add-ons, lifted structures, orbital commands and products of Terran towns."""

from __future__ import annotations

import numpy as np
import pytest
from s2clientprotocol import error_pb2 as error_pb
from s2clientprotocol import raw_pb2 as raw_pb
from s2clientprotocol import sc2api_pb2 as sc_pb

from tests.standin.sessions import PLACES, abilities, apart, command, place_of, saved, step_until

TECH_LAB, REACTOR, BARRACKS_LAB, BARRACKS_REACTOR, FACTORY_LAB = 5, 6, 37, 38, 39
CENTER, DEPOT, REFINERY, BARRACKS = 18, 19, 20, 21
FACTORY, STARPORT, FUSION_CORE = 27, 28, 30
ORBITAL, BARRACKS_FLYING, FACTORY_FLYING, CENTER_FLYING = 132, 46, 43, 36
SCV, MARINE, MARAUDER, CYCLONE, MULE, BATTLECRUISER, VIKING = 45, 48, 51, 692, 268, 57, 35
DARK_TEMPLAR, FIELD, GEYSER = 76, 341, 342
STOP, MOVE, ATTACK, GATHER, SCAN, CALL_MULE = 4, 16, 23, 3666, 399, 171
BUILD_FACTORY, BUILD_STARPORT, BUILD_FUSION_CORE = 328, 329, 333
TRAIN_SCV, TRAIN_MARINE, TRAIN_MARAUDER = 524, 560, 563
TRAIN_CYCLONE, TRAIN_BATTLECRUISER = 597, 623
BUILD_LAB, BUILD_REACTOR, LIFT, LAND, CANCEL, CANCEL_LAST = 3682, 3683, 3679, 3678, 3659, 3671
UPGRADE_TO_ORBITAL = 1516
LOWERED, BUILD_DEPOT, LOWER = 47, 319, 556


def _nearest(session, unit_type: int, center: raw_pb.Unit) -> raw_pb.Unit:
    """Of the visible units of a type, the unit that is nearest to another unit."""
    seen = [one for one in session.units(unit_type) if one.display_type == raw_pb.Visible]
    return min(seen, key=lambda one: apart(one, center))


def _with_lab(session, structure: int, add_on: int = BUILD_LAB) -> None:
    assert session.order(session.units(structure), add_on) == 1
    session.step(810)
    assert not session.one(structure).orders


def test_a_tech_lab_is_built_beside_its_structure(town):
    session = town(BARRACKS)
    barracks = session.one(BARRACKS)
    assert session.order(barracks, TRAIN_MARAUDER) == error_pb.TechRequirementsNotMet
    assert TRAIN_MARAUDER not in abilities(session, barracks)
    before = saved(session)
    assert session.order(barracks, BUILD_LAB) == 1
    session.step(200)
    assert saved(session) == (before[0] - 50, before[1] - 25)
    barracks, lab = session.one(BARRACKS), session.one(BARRACKS_LAB)
    assert [order.ability_id for order in barracks.orders] == [421]
    assert barracks.orders[0].progress == pytest.approx(0.5, abs=0.01)
    assert lab.build_progress == pytest.approx(0.5, abs=0.01)
    assert lab.health == pytest.approx(220, abs=3)
    assert barracks.add_on_tag == lab.tag
    assert place_of(lab) == (barracks.pos.x + 2.5, barracks.pos.y - 0.5)
    assert session.order(barracks, TRAIN_MARINE) == error_pb.CantQueueThatOrder
    session.step(202)
    assert session.one(BARRACKS_LAB).build_progress == 1
    assert TRAIN_MARAUDER in abilities(session, barracks)
    assert session.order(barracks, TRAIN_MARAUDER) == 1
    session.step(482)
    assert session.one(MARAUDER).alliance == raw_pb.Self


def test_an_add_on_needs_its_place(town):
    session = town(BARRACKS)
    barracks = session.one(BARRACKS)
    assert session.order(barracks, BUILD_LAB, PLACES[1]) == error_pb.AddOnTooFarFromBuilding
    session.create((DEPOT, 1, PLACES[0][0] + 2.5, PLACES[0][1] - 0.5))
    assert session.order(barracks, BUILD_REACTOR) == error_pb.CantBuildLocationInvalid
    session.kill(session.units(DEPOT)[0])
    session.step(2)
    assert session.order(barracks, BUILD_REACTOR, PLACES[0]) == 1


@pytest.mark.parametrize("destroyed", [BARRACKS_REACTOR, BARRACKS])
def test_an_add_on_is_destroyed(town, destroyed):
    session = town(BARRACKS)
    before = saved(session)
    session.order(session.one(BARRACKS), BUILD_REACTOR)
    session.step(100)
    session.kill(session.one(destroyed))
    session.step(3)
    assert not session.units(BARRACKS_REACTOR)
    assert saved(session) == (before[0] - 50, before[1] - 50)
    for barracks in session.units(BARRACKS):
        assert not barracks.orders
        assert not barracks.HasField("add_on_tag")


def test_a_reactor_makes_two_at_once(town):
    session = town(BARRACKS, CENTER)
    _with_lab(session, BARRACKS, BUILD_REACTOR)
    barracks = session.one(BARRACKS)
    for _ in range(8):
        assert session.order(barracks, TRAIN_MARINE) == 1
        session.step()
    assert session.order(barracks, TRAIN_MARINE) == error_pb.QueueIsFull
    orders = session.one(BARRACKS).orders
    assert [order.progress > 0 for order in orders] == [True] * 2 + [False] * 6
    assert all(order.HasField("progress") for order in orders)
    assert session.order(barracks, TRAIN_MARAUDER) == error_pb.TechRequirementsNotMet
    for made in (0, 2, 4):
        session.step(385)
        assert len(session.units(MARINE)) == made
        session.step(14)
        assert len(session.units(MARINE)) == made + 2
    assert session.order(barracks, CANCEL_LAST) == 1
    session.step(402)
    assert len(session.units(MARINE)) == 7


def test_structures_lift_off_swap_add_ons_and_land(town):
    session = town(BARRACKS, FACTORY)
    _with_lab(session, BARRACKS)
    barracks, factory = session.one(BARRACKS), session.one(FACTORY)
    assert session.order([barracks, factory], LIFT) == 1
    session.step(16)
    assert [order.ability_id for order in session.one(BARRACKS).orders] == [452]
    session.step(18)
    flying = session.one(BARRACKS_FLYING)
    assert (flying.tag, flying.is_flying) == (barracks.tag, True)
    assert flying.pos.z > barracks.pos.z + 3
    assert place_of(session.one(TECH_LAB)) == (27.0, 45.0)
    assert not flying.HasField("add_on_tag")
    assert session.order(flying, MOVE, PLACES[4]) == 1
    assert session.order(session.one(FACTORY_FLYING), LAND, PLACES[0]) == 1
    session.step()
    (order,) = session.one(FACTORY_FLYING).orders
    assert (order.ability_id, order.target_world_space_pos.x) == (520, PLACES[0][0])
    step_until(session, lambda: session.units(FACTORY))
    landed, lab = session.one(FACTORY), session.one(FACTORY_LAB)
    assert (place_of(landed), landed.add_on_tag, landed.is_flying) == (PLACES[0], lab.tag, False)
    assert session.order(landed, TRAIN_CYCLONE) == 1
    session.step(722)
    assert session.one(CYCLONE)
    assert place_of(session.one(BARRACKS_FLYING)) == PLACES[4]


def test_of_two_orders_in_a_loop_the_first_counts(town):
    session = town(BARRACKS)
    barracks = session.units(BARRACKS)
    orders = command(barracks, LIFT), command(barracks, TRAIN_MARINE)
    assert session.act(*orders) == [1, 1]
    session.step()
    reply = session.observed()
    errors = [(one.ability_id, one.result) for one in reply.action_errors]
    assert errors == [(TRAIN_MARINE, error_pb.CantQueueThatOrder)]
    session.step(500)
    assert not session.units(MARINE)
    assert not session.one(BARRACKS_FLYING).orders


def test_a_depot_that_is_lowered_twice_in_a_loop_is_lowered(town):
    session = town(DEPOT)
    depot = session.one(DEPOT)
    assert session.act(*[command(depot, LOWER)] * 2) == [1, 1]
    session.step()
    reply = session.observed()
    errors = [(one.ability_id, one.result) for one in reply.action_errors]
    assert errors == [(LOWER, error_pb.NotSupported)]
    assert session.one(LOWERED).tag == depot.tag


def test_a_site_that_is_cancelled_twice_in_a_loop_is_paid_back_once(town):
    session = town()
    worker = session.units(SCV)[0]
    assert session.order(worker, BUILD_DEPOT, PLACES[0]) == 1
    step_until(session, lambda: session.units(DEPOT))
    before = saved(session)
    assert session.act(*[command([session.one(DEPOT)], CANCEL)] * 2) == [1, 1]
    session.step()
    assert saved(session) == (before[0] + 75, before[1])


def test_where_a_structure_cannot_land(town):
    session = town(BARRACKS, BARRACKS)
    barracks, other = session.units(BARRACKS)
    session.order(barracks, LIFT)
    session.step(34)
    for place in (PLACES[1], (1.0, 1.0)):
        assert session.order(barracks, LAND, place) == error_pb.CantLandLocationInvalid
    assert session.order(barracks, LAND) == error_pb.CantLandLocationInvalid
    assert session.order(barracks, LAND, PLACES[2]) == 1
    session.step(100)
    session.create((MARINE, 2, *PLACES[2]))
    session.step(300)
    flying = session.one(BARRACKS_FLYING)
    assert (place_of(flying), list(flying.orders)) == (PLACES[2], [])
    assert session.one(BARRACKS).tag == other.tag


def test_a_command_center_lands_at_a_distance_to_resources(town):
    session = town()
    center = session.one(CENTER)
    session.order(center, LIFT)
    session.step(34)
    flying = session.one(CENTER_FLYING)
    near = _nearest(session, FIELD, center)
    beside = near.pos.x + (4 if near.pos.x < center.pos.x else -4), near.pos.y
    result = session.order(flying, LAND, beside)
    assert result in {error_pb.CantLandTooCloseToResources, error_pb.CantLandLocationInvalid}
    assert session.order(flying, LAND, place_of(center)) == 1
    session.step(40)
    assert place_of(session.one(CENTER)) == place_of(center)


def test_units_walk_under_a_lifted_wall(town):
    session = town(BARRACKS)
    ends = (21.5, 45.5), (27.5, 45.5)
    around = session.way(*ends)
    session.order(session.units(BARRACKS), LIFT)
    session.step(40)
    assert session.way(*ends) == 6 < around


def test_an_orbital_command(town):
    session = town()
    center = session.one(CENTER)
    upgrade = command(center, UPGRADE_TO_ORBITAL)
    assert session.act(upgrade) == [error_pb.TechRequirementsNotMet]
    session.create((BARRACKS, 1, *PLACES[0]))
    before = saved(session)
    for ends_with in (CANCEL, None):
        assert session.act(upgrade) == [1]
        session.step(280)
        assert saved(session) == (before[0] - 150, before[1])
        shown = session.one(CENTER)
        assert [order.ability_id for order in shown.orders] == [1516]
        assert shown.orders[0].progress == pytest.approx(0.5, abs=0.01)
        assert session.order(center, TRAIN_SCV) == error_pb.CantQueueThatOrder
        if ends_with is not None:
            assert session.order(center, ends_with) == 1
            session.step()
            assert saved(session) == before
    session.step(282)
    orbital = session.one(ORBITAL)
    assert (orbital.tag, orbital.energy_max) == (center.tag, 200)
    assert orbital.energy == pytest.approx(50, abs=0.2)
    assert (orbital.assigned_harvesters, orbital.ideal_harvesters) == (12, 16)
    assert session.observe().player_common.food_cap == 15
    collected = session.brought()
    session.step(200)
    assert session.brought() > collected
    assert session.order(orbital, TRAIN_SCV) == 1


def _orbital(town, **options):
    """A town in which the command centre has become an orbital command, and SCVs stand still."""
    session = town(BARRACKS, **options)
    world = session.state.game.world
    for unit in world.owned_by(1):
        if unit.type.name == "CommandCenter":
            session.kill(unit)
            session.create((ORBITAL, 1, unit.x, unit.y))
    session.step(2)
    return session


def test_a_mule_gathers_for_64_seconds(town):
    session = _orbital(town)
    orbital = session.one(ORBITAL)
    session.order(session.units(SCV), STOP)
    session.step(300)
    session.order(session.units(SCV), STOP)
    session.step(2)
    near = _nearest(session, FIELD, orbital)
    before = session.brought()
    session.state.game.world.by_tag[orbital.tag].energy = 60.0
    call = command(orbital, CALL_MULE, target=near)
    assert session.act(call, call) == [1, 1]
    session.step()
    assert len(session.units(MULE)) == 1
    assert session.act(call) == [error_pb.NotEnoughEnergy]
    mule = session.one(MULE)
    assert [order.ability_id for order in mule.orders] == [166]
    assert session.observe().player_common.food_used == 12
    session.step(1400)
    assert session.one(MULE).tag == mule.tag
    session.step(40)
    assert not session.units(MULE)
    assert session.brought() - before == 225


def test_a_mule_gathers_no_gas(town):
    session = _orbital(town)
    orbital = session.one(ORBITAL)
    geyser = _nearest(session, GEYSER, orbital)
    session.create((REFINERY, 1, *place_of(geyser)))
    session.order(orbital, CALL_MULE, place_of(orbital))
    session.step(2)
    mule, refinery = session.one(MULE), session.one(REFINERY)
    assert session.order(mule, GATHER, target=refinery) == error_pb.CantHarvestThatResource
    far = command(orbital, CALL_MULE, (44.0, 90.0))
    session.state.game.world.by_tag[orbital.tag].energy = 200.0
    assert session.act(far) == [error_pb.MustTargetVisibleLocation]


def test_a_scan_shows_a_place_and_what_is_cloaked(town):
    session = _orbital(town)
    orbital = session.one(ORBITAL)
    there = (68.0, 20.0) if orbital.pos.x < 44 else (20.0, 76.0)
    session.create((DARK_TEMPLAR, 2, *there))
    session.step()
    assert not session.units(DARK_TEMPLAR)
    assert session.order(orbital, SCAN, there) == 1
    session.step(4)
    seen = session.observe()
    (effect,) = seen.raw_data.effects
    (place,) = effect.pos
    assert (effect.effect_id, effect.radius, place.x, place.y) == (6, 13.0, *there)
    assert session.one(DARK_TEMPLAR).cloak == raw_pb.CloakedDetected
    session.step(186)
    assert session.units(DARK_TEMPLAR)
    session.step(10)
    seen = session.observe()
    assert not seen.raw_data.effects
    assert not session.units(DARK_TEMPLAR)


def test_the_nearest_of_several_scans(town):
    session = _orbital(town)
    near = session.one(ORBITAL)
    session.create((ORBITAL, 1, *PLACES[1]))
    session.step(2)
    energy = {unit.tag: unit.energy for unit in session.units(ORBITAL)}
    assert session.order(session.units(ORBITAL), SCAN, (near.pos.x + 1, near.pos.y)) == 1
    session.step()
    for unit in session.units(ORBITAL):
        spent = 50 if unit.tag == near.tag else 0
        assert unit.energy == pytest.approx(energy[unit.tag] - spent, abs=0.1)
    assert len(session.observe().raw_data.effects) == 1


def test_each_structure_and_unit_needs_those_before_it(town):
    session = town()
    worker = session.units(SCV)[:1]
    needs = error_pb.TechRequirementsNotMet
    chain = ((BUILD_FACTORY, BARRACKS), (BUILD_STARPORT, FACTORY), (BUILD_FUSION_CORE, STARPORT))
    for place, (ability, structure) in zip(PLACES, chain, strict=False):
        assert session.order(worker, ability, PLACES[4]) == needs
        session.create((structure, 1, *place))
        assert session.order(worker, ability, PLACES[4]) == 1
        session.order(worker, STOP)
        session.step(2)
    train = command(session.units(STARPORT), TRAIN_BATTLECRUISER)
    assert session.act(train) == [needs]
    _with_lab(session, STARPORT)
    assert session.act(train) == [needs]
    session.create((FUSION_CORE, 1, *PLACES[3]))
    assert session.act(train) == [error_pb.NotEnoughFood]
    session.create((DEPOT, 1, 36.0, 50.0))
    assert session.act(train) == [1]
    session.step(1442)
    cruiser = session.one(BATTLECRUISER)
    assert (cruiser.is_flying, cruiser.health_max) == (True, 550)


def test_a_battlecruiser_flies_over_cliffs_and_beats_marines(town):
    session = town(disable_fog=True)
    session.create(
        (BATTLECRUISER, 1, 32.0, 48.0), (MARINE, 2, 43.0, 48.0, 4), (VIKING, 2, 52.0, 48.0)
    )
    cruiser = session.units(BATTLECRUISER)
    assert session.order(cruiser, ATTACK, (52.0, 48.0)) == 1
    session.step(700)
    assert not session.units(MARINE)
    assert not session.units(VIKING)
    assert 0 < session.one(BATTLECRUISER).health < 550
    assert place_of(session.one(BATTLECRUISER)) == (52.0, 48.0)


def test_a_viking_fires_at_the_air_alone(town):
    session = town(disable_fog=True)
    session.create((VIKING, 1, 32.0, 48.0), (MARAUDER, 2, 34.0, 48.0))
    attack = command(session.units(VIKING), ATTACK, target=session.one(MARAUDER).tag)
    assert session.act(attack) == [error_pb.CantTargetGroundUnits]
    session.step(100)
    assert session.one(MARAUDER).health == 125
    assert session.one(VIKING).health == 135


def test_a_game_with_all_of_it_is_replayed(melee):
    session = melee(sc_pb.VeryHard, seed=3)
    center, workers = session.one(CENTER), session.units(SCV)
    geyser, field = (_nearest(session, kind, center) for kind in (GEYSER, FIELD))
    session.spawn((BARRACKS, 1, *PLACES[0]), (REFINERY, 1, *place_of(geyser)))
    session.spawn((ORBITAL, 1, *PLACES[2]))
    session.step()
    barracks, orbital = session.one(BARRACKS), session.one(ORBITAL)
    frames = []
    for asked, loops in (
        (command(workers[:3], GATHER, target=session.one(REFINERY)), 1200),
        (command(orbital, CALL_MULE, target=field), 50),
        (command(barracks, BUILD_REACTOR), 810),
        (command(center, UPGRADE_TO_ORBITAL), 100),
        (command(barracks, TRAIN_MARINE), 100),
        (command(barracks, TRAIN_MARINE), 100),
        (command(barracks, CANCEL_LAST), 400),
        (command(barracks, LIFT), 40),
        (command(barracks, MOVE, PLACES[4]), 100),
        (command(barracks, LAND, PLACES[3]), 300),
        (command(orbital, SCAN, (44.0, 48.0)), 100),
        (command(workers, ATTACK, (44.0, 48.0)), 600),
    ):
        assert session.act(asked) == [1]
        session.step(loops)
        frames.append((loops, session.observe().SerializeToString(deterministic=True)))
    replay = session.replay()
    session.ask(leave_game=sc_pb.RequestLeaveGame())
    session.watch(replay)
    session.observe()  # an observation explores the cells in sight
    session.step()
    session.observe()
    for loops, frame in frames:
        session.step(loops)
        assert session.observe().SerializeToString(deterministic=True) == frame


def test_a_kept_observation_of_a_town_has_the_bytes_of_a_new_one(town):
    session = town(BARRACKS, FACTORY, STARPORT, ORBITAL, FUSION_CORE, money=20_000)
    session.create((DEPOT, 1, 36.0, 48.0), (DEPOT, 1, 36.0, 51.0))
    rng = np.random.default_rng(4)
    types = set()
    for _ in range(250):
        own = [one for one in session.observe().raw_data.units if one.alliance == raw_pb.Self]
        types |= {one.unit_type for one in own}
        makers = [one for one in own if one.radius > 1.3]
        group = makers if rng.random() < 0.7 else own
        unit = group[rng.integers(len(group))]
        usable = sorted(abilities(session, unit))
        if usable:
            point = rng.uniform((20, 36), (38, 53)).tolist() if rng.random() < 0.6 else None
            session.order(unit, usable[rng.integers(len(usable))], point)
        session.step(int(rng.integers(1, 120)))
        session.look()
    assert types >= {BARRACKS_FLYING, FACTORY_FLYING, TECH_LAB, REACTOR}


def test_a_structure_that_is_finished_while_nothing_is_earned_counts_at_once(town):
    session = town(BARRACKS, money=1000)
    session.order(session.units(SCV), STOP)
    session.order(session.one(BARRACKS), BUILD_LAB)
    session.step(390)
    session.look()
    session.step(30)
    session.look()
