"""Tests mining, building, training, repair, the alerts of observations, and idle times."""

from __future__ import annotations

import math

import pytest
from s2clientprotocol import debug_pb2 as debug_pb
from s2clientprotocol import error_pb2 as error_pb
from s2clientprotocol import raw_pb2 as raw_pb
from s2clientprotocol import sc2api_pb2 as sc_pb

from tests.standin.sessions import abilities, apart, cheat, command, place_of, step_until

GAS_MAP, MARINE_MAP = "CollectMineralsAndGas", "BuildMarines"
CENTER, DEPOT, REFINERY, BARRACKS, SCV, MARINE, FIELD, GEYSER = 18, 19, 20, 21, 45, 48, 341, 342
SMART, STOP, MOVE, GATHER = 1, 4, 16, 3666
BUILD_DEPOT, BUILD_REFINERY, BUILD_BARRACKS, TRAIN_SCV, TRAIN_MARINE = 319, 320, 321, 524, 560
RALLY = 3690


def test_the_maps_at_their_start(offline):
    offline.start(GAS_MAP)
    seen = offline.observe()
    assert [len(offline.units(kind)) for kind in (CENTER, SCV, FIELD, GEYSER)] == [1, 12, 16, 4]
    player = seen.player_common
    assert (player.minerals, player.food_cap, player.food_used) == (50, 15, 12)
    assert (player.food_workers, player.idle_worker_count, player.army_count) == (12, 12, 0)
    assert {unit.mineral_contents for unit in offline.units(FIELD)} == {1800}
    assert {unit.vespene_contents for unit in offline.units(GEYSER)} == {2250}
    offline.start(MARINE_MAP)
    assert [len(offline.units(kind)) for kind in (CENTER, SCV, FIELD)] == [1, 12, 8]
    (rally,) = offline.one(CENTER).rally_targets
    assert (rally.point.x, rally.point.y) == (23, 26.5)
    assert offline.observe().player_common.idle_worker_count == 0


def test_a_worker_brings_five_minerals_a_trip(offline):
    offline.start(GAS_MAP)
    worker, field = offline.units(SCV)[0], offline.units(FIELD)[0]
    assert offline.order(worker, GATHER, target=field) == 1
    offline.step()
    assert [order.ability_id for order in offline.units(SCV)[0].orders] == [295]
    step_until(offline, lambda: offline.units(SCV)[0].buff_ids)
    assert list(offline.units(SCV)[0].buff_ids) == [271]
    assert [order.ability_id for order in offline.units(SCV)[0].orders] == [296]
    assert offline.units(FIELD)[0].mineral_contents == 1795
    step_until(offline, lambda: offline.money()[0] == 55)
    period = step_until(offline, lambda: offline.money()[0] == 60)
    assert 90 <= period <= 125
    seen = offline.observe()
    assert seen.score.score == seen.score.score_details.collected_minerals == 10


def test_the_collection_rate_is_reckoned_as_in_real_replays(offline):
    offline.start(GAS_MAP)
    offline.order(offline.units(SCV), SMART, target=offline.units(FIELD)[0])
    offline.step(500)
    before = offline.brought()
    offline.step(240)
    earned = offline.brought() - before
    rate = offline.observe().score.score_details.collection_rate_minerals
    assert rate == earned * 4 * 5734 / 4096 > 0


def test_workers_at_one_field_spread_over_its_neighbours(offline):
    offline.start(GAS_MAP)
    field = offline.units(FIELD)[0]
    offline.order(offline.units(SCV)[:6], GATHER, target=field)
    offline.step(400)
    assert sum(one.mineral_contents < 1800 for one in offline.units(FIELD)) >= 3


def test_gas_needs_a_refinery_whose_builder_gathers(offline):
    offline.start(GAS_MAP)
    worker, geyser = offline.units(SCV)[0], offline.units(GEYSER)[0]
    assert offline.order(worker, GATHER, target=geyser) == error_pb.MustBuildRefineryFirst
    assert offline.order(worker, BUILD_REFINERY, target=geyser) == error_pb.NotEnoughMinerals
    offline.rich(75)
    assert offline.order(worker, BUILD_REFINERY, target=geyser) == 1
    step_until(offline, lambda: offline.units(REFINERY))
    assert offline.money() == (0, 0)
    (refinery,) = offline.units(REFINERY)
    assert refinery.build_progress < 0.1
    assert refinery.health < 60
    step_until(offline, lambda: offline.units(REFINERY)[0].build_progress == 1, limit=500)
    assert offline.units(REFINERY)[0].health == pytest.approx(500)
    step_until(offline, lambda: offline.money()[1] == 4)
    offline.step(300)
    (refinery,) = offline.units(REFINERY)
    assert (refinery.assigned_harvesters, refinery.ideal_harvesters) == (1, 3)
    assert refinery.vespene_contents == 2250 - 4 * round((2250 - refinery.vespene_contents) / 4)


def test_barracks_need_a_depot_and_marines_a_barracks(offline):
    offline.start(MARINE_MAP)
    offline.rich()
    worker = offline.units(SCV)[0]
    barracks = command(worker, BUILD_BARRACKS, (38, 28))
    assert offline.act(barracks) == [error_pb.TechRequirementsNotMet]
    assert offline.order(worker, BUILD_DEPOT, (35, 25)) == 1
    step_until(offline, lambda: offline.units(DEPOT))
    assert offline.act(barracks) == [error_pb.TechRequirementsNotMet], "it is not finished"
    assert offline.observe().player_common.food_cap == 15
    step_until(offline, lambda: offline.observe().player_common.food_cap == 23)
    assert offline.act(barracks) == [1]
    step_until(offline, lambda: offline.units(BARRACKS))
    train = command(offline.one(BARRACKS), TRAIN_MARINE)
    assert offline.act(train) == [error_pb.BuildingIsUnderConstruction]
    step_until(offline, lambda: offline.units(BARRACKS)[0].build_progress == 1)
    assert offline.act(train, train) == [1, 1]
    offline.step(201)
    (first, second) = offline.units(BARRACKS)[0].orders
    assert (first.ability_id, second.ability_id) == (TRAIN_MARINE, TRAIN_MARINE)
    assert first.progress == pytest.approx(0.5, abs=0.01)
    assert offline.observe().score.score == 0
    offline.step(610)
    assert len(offline.units(MARINE)) == offline.observe().score.score == 2
    assert offline.observe().player_common.army_count == 2


def test_training_takes_money_and_supply(offline):
    offline.start(MARINE_MAP)
    train = command(offline.one(CENTER), TRAIN_SCV)
    assert offline.act(train) == [1]
    assert offline.act(train) == [1], "paid with the next loop"
    offline.step()
    errors = offline.state.action_errors
    assert [error.result for error in errors] == [error_pb.NotEnoughMinerals]
    assert offline.act(train) == [error_pb.NotEnoughMinerals]
    offline.rich()
    offline.act(*[train] * 5)
    offline.step()
    assert len(offline.units(CENTER)[0].orders) == 5
    assert offline.act(train) == [error_pb.QueueIsFull]
    offline.step(3 * 272 + 10)
    assert len(offline.units(SCV)) == 15
    assert offline.act(train) == [error_pb.NotEnoughFood]
    offline.step(300)
    assert len(offline.units(SCV)) == 15, "the fourth waits for supply"
    assert offline.observe().player_common.idle_worker_count == 0, "new ones rally at the minerals"


def test_the_nearest_of_several_workers_builds(offline):
    offline.start(MARINE_MAP)
    offline.rich(1000)
    offline.order(offline.units(SCV), STOP)
    offline.step(2)
    workers, place = offline.units(SCV), (35.0, 25.0)
    nearest = min(workers, key=lambda unit: math.dist(place_of(unit), place))
    assert offline.order(workers, BUILD_DEPOT, place) == 1
    offline.step(2)
    assert [unit.tag for unit in offline.units(SCV) if unit.orders] == [nearest.tag]
    assert offline.money()[0] == 900
    step_until(offline, lambda: offline.units(DEPOT))


def test_score_details_tell_the_economy_from_the_army(offline):
    offline.start(MARINE_MAP)
    offline.rich()
    offline.order(offline.units(SCV)[:1], BUILD_DEPOT, (35, 25))
    offline.order(offline.units(CENTER), TRAIN_SCV)
    step_until(offline, lambda: offline.units(DEPOT))
    details = offline.observe().score.score_details
    assert (details.spent_minerals, details.total_value_structures) == (150, 500)
    assert (details.food_used.economy, details.food_used.army) == (12, 0)
    assert details.total_value_units == 12 * 50


def test_a_rally_point(offline):
    offline.start(MARINE_MAP)
    (center,) = offline.units(CENTER)
    offline.act(command(center, RALLY, (40, 30)), command(center, TRAIN_SCV))
    offline.step(272 + 150)
    newest = max(offline.units(SCV), key=lambda unit: unit.tag)
    assert (newest.pos.x, newest.pos.y) == pytest.approx((40, 30), abs=0.1)


@pytest.mark.parametrize(
    ("x", "y", "fits"),
    [(35, 25, True), (31, 28, False), (24, 30, False), (20.4, 25, False), (37.3, 24.8, True)],
)
def test_structures_stand_on_free_cells(offline, x, y, fits):
    offline.start(MARINE_MAP)
    offline.rich()
    expected = error_pb.Success if fits else error_pb.CantBuildLocationInvalid
    assert offline.can_place(BUILD_DEPOT, (x, y)) == [expected]
    worker = offline.units(SCV)[0]
    assert offline.order(worker, BUILD_DEPOT, (x, y)) == expected
    if fits:
        step_until(offline, lambda: offline.units(DEPOT))
        (depot,) = offline.units(DEPOT)
        assert (depot.pos.x, depot.pos.y) == (round(x), round(y))


def test_a_builder_stays_until_it_is_done_and_then_obeys(offline):
    offline.start(MARINE_MAP)
    offline.rich()
    tag = offline.units(SCV)[0].tag
    offline.order(tag, BUILD_DEPOT, (35, 25))
    step_until(offline, lambda: offline.units(DEPOT))
    assert offline.order(tag, MOVE, (44, 35)) == 1
    step_until(offline, lambda: offline.units(DEPOT)[0].build_progress == 1, limit=500)
    offline.step(100)
    (worker,) = (unit for unit in offline.units(SCV) if unit.tag == tag)
    assert math.dist(place_of(worker), (44, 35)) < 1


def test_a_builder_whose_next_site_is_gone_stays_where_it_is(offline):
    offline.start("Melee/Flat64")
    offline.rich()
    first, second = (unit.tag for unit in offline.units(SCV)[:2])
    center = offline.one(CENTER).pos
    place = center.x + 6, center.y + 8
    offline.order(first, BUILD_DEPOT, (center.x + 6, center.y - 8))
    step_until(offline, lambda: offline.units(DEPOT))
    site = offline.one(DEPOT)
    offline.act(command(first, STOP), command(second, BUILD_DEPOT, place))
    offline.step()
    assert offline.order(second, SMART, target=site, queued=True) == 1
    offline.kill(site)
    step_until(offline, lambda: [one for one in offline.units(DEPOT) if one.build_progress == 1])
    offline.step(100)
    (worker,) = (unit for unit in offline.units(SCV) if unit.tag == second)
    assert not worker.orders
    assert math.dist(place_of(worker), place) < 3


def test_without_an_economy_its_commands_are_refused(offline):
    offline.arena((SCV, 1, 20, 20), (FIELD, 16, 30, 20), (BARRACKS, 1, 40, 40))
    offline.step()
    (worker,), (field,) = offline.units(SCV), offline.units(FIELD)
    (barracks,) = offline.units(BARRACKS)
    for refused in (
        command(worker, GATHER, target=field),
        command(worker, BUILD_DEPOT, (30, 30)),
        command(barracks, TRAIN_MARINE),
    ):
        assert offline.act(refused) == [error_pb.NotSupported]


def test_a_depleted_field_disappears_and_its_worker_goes_on(offline):
    offline.start(GAS_MAP)
    worker, field = offline.units(SCV)[0], offline.units(FIELD)[0]
    offline.state.game.world.by_tag[field.tag].job.left = 7
    offline.order(worker, GATHER, target=field)
    offline.step(1000)
    assert len(offline.units(FIELD)) == 15
    assert offline.brought() > 7 + 15


ORBITAL, BAY = 132, 22
LAB, ZERGLING, TEMPLAR, NEXUS, FLEET_BEACON = 37, 105, 76, 59, 64
GATHER_SCV = 295
TRAIN_PROBE, TRAIN_MOTHERSHIP = 1006, 110
TECH_LAB, UPGRADE_TO_ORBITAL, WEAPONS, ARMOR_OF_BUILDINGS, STIMPACK = 421, 1516, 652, 651, 730
MORPH_TO_BANELING, ARCHON_WARP, CALL_MULE = 80, 1766, 171
MADE = [  # each row has a structure, its ability, and the alert
    (CENTER, TRAIN_SCV, "TrainWorkerComplete"),
    (BARRACKS, TRAIN_MARINE, "TrainUnitComplete"),
    (NEXUS, TRAIN_PROBE, "TrainWorkerComplete"),
    (NEXUS, TRAIN_MOTHERSHIP, "MothershipComplete"),
    (BARRACKS, TECH_LAB, "AddOnComplete"),
    (CENTER, UPGRADE_TO_ORBITAL, "UpgradeComplete"),
    (BAY, WEAPONS, "UpgradeComplete"),
    (BAY, ARMOR_OF_BUILDINGS, "UpgradeComplete"),
    (LAB, STIMPACK, "ResearchComplete"),
]


def alerts(session) -> list[str]:
    """The names of the alerts in the next observation."""
    return [sc_pb.Alert.Name(one) for one in session.observe().alerts]


@pytest.fixture
def rich(field):
    """A town that has no workers, and makes each unit and structure in one second."""
    field.kill(field.units(SCV))
    cheat(field, debug_pb.all_resources, debug_pb.tech_tree, debug_pb.food, debug_pb.fast_build)
    alerts(field)
    return field


@pytest.mark.parametrize(("by", "ability_id", "alert"), MADE)
def test_what_a_structure_has_made_is_told_once(rich, by, ability_id, alert):
    if by == LAB:
        rich.create((BARRACKS, 1, 44.5, 48.5), (LAB, 1, 47, 48))
    elif by != CENTER:
        rich.create((by, 1, 44.5, 48.5))
    rich.step()
    structure = rich.one(by)
    assert ability_id in abilities(rich, structure)
    assert rich.order(structure, ability_id) == 1
    told = []
    for _ in range(4):
        rich.step(8)
        told += alerts(rich)
    assert told == [alert]


def test_what_workers_and_units_become_is_told(rich):
    rich.create((SCV, 1, 44, 48), (ZERGLING, 1, 40, 40), (TEMPLAR, 1, 48, 40, 2))
    rich.step()
    rich.order(rich.units(SCV), BUILD_DEPOT, (46, 50))
    rich.order(rich.units(ZERGLING), MORPH_TO_BANELING)
    rich.order(rich.units(TEMPLAR), ARCHON_WARP)
    told = set()
    for _ in range(60):
        rich.step(8)
        told |= set(alerts(rich))
    assert told == {"BuildingComplete", "MorphComplete", "MergeComplete"}


def test_the_end_of_a_mule_and_of_a_mineral_field_is_told(field):
    field.create((ORBITAL, 1, 24.5, 70.5))
    field.step()
    home = field.one(CENTER)
    mined, other, *_ = sorted(field.units(FIELD), key=lambda one: apart(one, home))
    field.state.playing().world.by_tag[mined.tag].job.left = 5
    field.order(field.units(SCV)[0], GATHER_SCV, target=mined)
    assert field.order(field.one(ORBITAL), CALL_MULE, target=other) == 1
    told = []
    for _ in range(190):
        field.step(8)
        told += alerts(field)
    assert sorted(told) == ["MULEExpired", "MineralsExhausted"]


def test_attacks_are_told_seldom_and_of_two_places(session_for):
    session = session_for()
    places = (10, 30, 50)
    session.arena(
        *((FLEET_BEACON, 1, x, 50) for x in places), *((MARINE, 2, x, 45) for x in places)
    )
    session.create((SCV, 1, 12, 20), (SCV, 1, 14, 20), (MARINE, 2, 13, 18))
    told = []
    for _ in range(29):
        session.step(8)
        told += alerts(session)
    assert sorted(told) == ["BuildingUnderAttack"] * 2 + ["UnitUnderAttack"]
    session.step(16)
    assert "BuildingUnderAttack" in alerts(session)  # 15 s after the first alert


def test_idle_workers_and_structures_are_counted_in_seconds(offline):
    offline.start("CollectMineralsAndGas")

    def idle_s() -> tuple[float, float]:
        details = offline.observe().score.score_details
        return details.idle_worker_time, details.idle_production_time

    assert idle_s() == (0, 0)
    offline.step(16)
    assert idle_s() == (12, 1)
    offline.order(offline.units(SCV)[2:], GATHER_SCV, target=offline.units(FIELD)[0])
    offline.order(offline.one(CENTER), TRAIN_SCV)
    offline.step(32)
    assert idle_s() == (12 + 2 * 2, 1)
    offline.order(offline.units(SCV)[:2], MOVE, (33, 28))
    offline.step(16)
    assert idle_s() == (12 + 2 * 2, 1)


LOWERED, LAB_ALONE, FACTORY = 47, 5, 27
MULE, HELLION, VIKING = 268, 53, 35
REPAIR, REPAIR_SCV, REPAIR_MULE = 3685, 316, 78
BESIDE = (24.5, 42.0)


@pytest.fixture
def damaged(town):
    """Begins a melee without an opponent, with money, one SCV, and a barracks at half its life."""

    def begin(kind: int = BARRACKS, money: int = 1000):
        session = town(kind, money=money)
        session.kill(session.units(SCV))
        session.create((SCV, 1, *BESIDE))
        session.step()
        session.state.game.world.minerals = money
        harm(session, session.one(kind), 0.5)
        return session

    return begin


def harm(session, unit: raw_pb.Unit, share: float) -> None:
    """Reduce a unit's life to this share of its full life."""
    living = session.state.game.world.by_tag[unit.tag]
    living.life = living.type.life * share


def test_a_structure_gets_its_life_back_for_a_quarter_of_its_cost(damaged):
    session = damaged()
    scv, barracks = session.one(SCV), session.one(BARRACKS)
    assert session.order(scv, REPAIR, target=barracks) == 1
    session.step()
    (order,) = session.one(SCV).orders
    assert (order.ability_id, order.target_unit_tag) == (REPAIR_SCV, barracks.tag)
    step_until(session, lambda: session.one(BARRACKS).health > 500)
    began_at = session.one(BARRACKS).health
    session.step(260)  # a quarter of the building time of 1040 loops
    assert session.one(BARRACKS).health - began_at == pytest.approx(250)
    assert session.money()[0] == pytest.approx(1000 - 150 / 16, abs=1)
    session.step(262)
    assert session.one(BARRACKS).health == 1000
    assert not session.one(SCV).orders
    assert session.money() == (1000 - 18, 1000)  # half of a full repair's cost, which is 150 · 0.25


def test_several_workers_add_up_and_gas_is_paid(damaged):
    session = damaged(FACTORY)
    session.create(*[(SCV, 1, *BESIDE)] * 3)
    session.order(session.units(SCV), REPAIR, target=session.one(FACTORY))
    session.step(100)
    before = session.one(FACTORY).health
    session.step(20)
    assert session.one(FACTORY).health - before == pytest.approx(4 * 20 * 1250 / 960, abs=1)
    step_until(session, lambda: not any(unit.orders for unit in session.units(SCV)))
    assert session.one(FACTORY).health == 1250
    assert session.money() == (1000 - 18, 1000 - 12)


def test_a_right_click_repairs_what_is_damaged(damaged):
    session = damaged()
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


def test_a_worker_follows_a_unit_that_walks_and_one_that_flies(damaged):
    session = damaged()
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


def test_a_worker_stops_when_its_patient_is_gone(damaged):
    session = damaged()
    barracks = session.one(BARRACKS)
    session.order(session.units(SCV), REPAIR, target=barracks)
    session.step(100)
    session.kill(barracks)
    session.step(3)
    assert not session.one(SCV).orders


def test_repairs_end_with_the_money(damaged):
    session = damaged(money=2)
    session.order(session.units(SCV), REPAIR, target=session.one(BARRACKS))
    session.step()
    step_until(session, lambda: not session.one(SCV).orders)
    assert session.money() == (0, 2)
    # After 80 of 1000 hit points a third mineral is due, which the player lacks.
    assert session.one(BARRACKS).health == pytest.approx(580, abs=2)


def test_a_queued_order_follows_a_repair(damaged):
    session = damaged()
    scv, barracks = session.one(SCV), session.one(BARRACKS)
    harm(session, barracks, 0.99)
    session.order(scv, REPAIR, target=barracks)
    session.order(scv, MOVE, BESIDE, queued=True)
    step_until(session, lambda: session.one(BARRACKS).health == 1000)
    session.step(2)
    assert [order.ability_id for order in session.one(SCV).orders] == [MOVE]


def test_targets_that_cannot_be_repaired(damaged):
    session = damaged()
    session.create((MARINE, 1, 28.0, 50.0), (HELLION, 2, 29.0, 50.0), (DEPOT, 1, 31.0, 50.0))
    scv = session.one(SCV)
    harm(session, session.one(MARINE), 0.5)
    harm(session, session.one(HELLION), 0.5)
    for kind in (MARINE, HELLION, DEPOT):  # a biological unit, an enemy, an undamaged structure
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


def test_a_mule_repairs_too_and_the_query_lists_it(damaged):
    session = damaged()
    session.create((MULE, 1, *BESIDE))
    for kind, ability in ((SCV, REPAIR_SCV), (MULE, REPAIR_MULE)):
        assert ability in abilities(session, session.one(kind))
    session.order(session.units(MULE), REPAIR, target=session.one(BARRACKS))
    session.step()
    assert [order.ability_id for order in session.one(MULE).orders] == [REPAIR_MULE]
    session.step(100)
    assert session.one(BARRACKS).health > 505


@pytest.mark.parametrize(
    ("kind", "build_loops"), [(ORBITAL, 1600), (LOWERED, 480), (LAB_ALONE, 400)]
)
def test_another_form_takes_as_long_as_the_first_one(damaged, kind, build_loops):
    session = damaged(kind)
    session.order(session.units(SCV), REPAIR, target=session.one(kind))
    half = session.one(kind).health
    step_until(session, lambda: session.one(kind).health > half)
    before = session.one(kind).health
    session.step(40)
    unit = session.one(kind)
    assert (unit.health - before) / unit.health_max == pytest.approx(40 / build_loops)
