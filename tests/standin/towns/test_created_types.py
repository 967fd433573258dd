"""Unit types that no map has: debug commands create them from the game's tables."""

from __future__ import annotations

import pytest
from s2clientprotocol import common_pb2 as common
from s2clientprotocol import debug_pb2 as debug_pb
from s2clientprotocol import sc2api_pb2 as sc_pb

ROACH, IMMORTAL, CANNON, HATCHERY, LARVA = 110, 83, 66, 86, 151
BURROWED_ROACH, OVERSEER, MARINE = 118, 129, 48
SCV, PROBE, DRONE, ATTACK = 45, 84, 104, 23
MISSILE, BRIDGE = 802, 748


@pytest.mark.parametrize("worker", [SCV, PROBE, DRONE])
def test_a_worker_attacks_only_if_it_is_ordered_to(offline, worker):
    offline.arena((worker, 1, 20, 30), (OVERSEER, 2, 20, 34), (IMMORTAL, 2, 21.2, 30))
    offline.debug(debug_pb.DebugCommand(game_state=debug_pb.god))
    offline.step(10)
    (immortal,) = offline.units(IMMORTAL)
    assert immortal.shield == 100
    offline.order(offline.units(worker), ATTACK, target=immortal)
    offline.step(4)
    assert offline.units(IMMORTAL)[0].shield == 100 - 5
    assert offline.units(worker)[0].weapon_cooldown > 20


def test_a_structure_fires_and_stands(offline):
    offline.arena(
        (CANNON, 1, 20, 30), (HATCHERY, 1, 40, 40), (ROACH, 2, 26, 30), (LARVA, 1, 40, 36)
    )
    offline.step(20)
    (roach,) = offline.units(ROACH)
    assert roach.health < roach.health_max
    (hatchery,) = offline.units(HATCHERY)
    assert (hatchery.health, hatchery.build_progress) == (1500, 1)
    assert offline.observe().player_common.food_cap == 6


def test_burrowed_units_are_hidden_from_who_does_not_detect_them(offline):
    offline.arena((MARINE, 1, 20, 30), (BURROWED_ROACH, 2, 24, 30))
    offline.step()
    assert not offline.units(BURROWED_ROACH)
    offline.create((OVERSEER, 1, 20, 34))
    offline.step(2)
    assert offline.one(BURROWED_ROACH).is_burrowed


@pytest.mark.parametrize("unit_type", [MISSILE, BRIDGE, 0, 4_000_000])
def test_other_types_than_units_are_refused(offline, unit_type):
    offline.arena((MARINE, 1, 20, 30))
    create = debug_pb.DebugCreateUnit(unit_type=unit_type, owner=1, pos=common.Point2D(x=20, y=20))
    commands = [debug_pb.DebugCommand(create_unit=create)]
    reply = offline.ask(debug=sc_pb.RequestDebug(debug=commands))
    assert f"Unknown unit type {unit_type}" in reply.error[0]


def test_energy_has_the_bounds_of_the_type(offline):
    offline.arena((OVERSEER, 1, 20, 30), (MARINE, 1, 24, 30))
    for unit_type, expected in ((OVERSEER, 200), (MARINE, 0)):
        offline.set_value(offline.one(unit_type), "Energy", 1e30)
        offline.step()
        assert offline.units(unit_type)[0].energy == expected
