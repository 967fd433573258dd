"""Alerts of an observation, and the idle times of its score: each as the game's data have it."""

from __future__ import annotations

import pytest
from s2clientprotocol import debug_pb2 as debug_pb
from s2clientprotocol import sc2api_pb2 as sc_pb

from tests.standin.sessions import abilities, apart
from tests.standin.towns.conftest import cheat

CENTER, SCV, BARRACKS, ORBITAL, BAY, MARINE = 18, 45, 21, 132, 22, 48
LAB, ZERGLING, TEMPLAR, NEXUS, FLEET_BEACON = 37, 105, 76, 59, 64
FIELD, MOVE, GATHER = 341, 16, 295
TRAIN_SCV, TRAIN_MARINE, TRAIN_PROBE, TRAIN_MOTHERSHIP = 524, 560, 1006, 110
TECH_LAB, UPGRADE_TO_ORBITAL, WEAPONS, ARMOR_OF_BUILDINGS, STIMPACK = 421, 1516, 652, 651, 730
BUILD_DEPOT, MORPH_TO_BANELING, ARCHON_WARP, CALL_MULE = 319, 80, 1766, 171
MADE = [  # by which structure, with which ability, and the alert
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
    """A town without workers that may make everything, in a second."""
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
    field.order(field.units(SCV)[0], GATHER, target=mined)
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
    assert "BuildingUnderAttack" in alerts(session)  # 15 s after the first one


def test_idle_workers_and_structures_are_counted_in_seconds(offline):
    offline.start("CollectMineralsAndGas")

    def idle_s() -> tuple[float, float]:
        details = offline.observe().score.score_details
        return details.idle_worker_time, details.idle_production_time

    assert idle_s() == (0, 0)
    offline.step(16)
    assert idle_s() == (12, 1)
    offline.order(offline.units(SCV)[2:], GATHER, target=offline.units(FIELD)[0])
    offline.order(offline.one(CENTER), TRAIN_SCV)
    offline.step(32)
    assert idle_s() == (12 + 2 * 2, 1)
    offline.order(offline.units(SCV)[:2], MOVE, (33, 28))
    offline.step(16)
    assert idle_s() == (12 + 2 * 2, 1)
