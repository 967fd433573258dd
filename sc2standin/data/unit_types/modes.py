"""The second modes of Terran units: sieged tanks, landed vikings, hellbats.

Hit points, radii, the blast of a sieged tank and the times that the tables lack are from memory.
"""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

from s2clientprotocol import common_pb2 as common

from sc2standin.data.unit_types.kinds import (
    ARMORED,
    BIOLOGICAL,
    LIGHT,
    MECHANICAL,
    UnitType,
    WeaponType,
)
from sc2standin.data.unit_types.terran import TERRAN_UNITS

_BY_NAME = {kind.name: kind for kind in TERRAN_UNITS}
_TANK, _VIKING = _BY_NAME["SiegeTank"], _BY_NAME["VikingFighter"]

_SIEGED = replace(
    _TANK,
    id=32,
    name="SiegeTankSieged",
    speed_per_s=0.0,
    rooted=True,
    weapon=WeaponType(
        damage=40,
        range=13,
        cooldown_s=3,
        bonus=(ARMORED, 30),
        min_range=2,
        blast=((0.46875, 1.0), (0.78125, 0.5), (1.25, 0.25)),
    ),
    cargo_size=0,
    build_time_loops=68.66796875,
    build_ability_id=388,
    tech_alias_id=33,
    made_from=_TANK,
    needs_tech_lab=False,
)
_LANDED = UnitType(
    id=34,
    name="VikingAssault",
    race=common.Terran,
    life=135,
    radius=0.75,
    speed_per_s=2.25,
    sight=10,
    weapon=WeaponType(damage=12, range=6, cooldown_s=1, bonus=(MECHANICAL, 8)),
    attributes=(ARMORED, MECHANICAL),
    minerals=150,
    vespene=75,
    food=2,
    cargo_size=2,
    build_time_loops=41.44140625,
    build_ability_id=403,
    tech_alias_id=1940,
    made_from=_VIKING,
)
_HELLBAT = UnitType(
    id=484,
    name="HellionTank",
    race=common.Terran,
    life=135,
    radius=0.625,
    speed_per_s=2.25,
    sight=10,
    weapon=WeaponType(damage=18, range=2, cooldown_s=2),
    attributes=(LIGHT, BIOLOGICAL, MECHANICAL),
    minerals=100,
    food=2,
    cargo_size=4,
    build_time_loops=480,
    build_ability_id=596,
    tech_requirement_id=29,
)
TERRAN_MODES: tuple[UnitType, ...] = (_SIEGED, _LANDED, _HELLBAT)


class Mode(NamedTuple):
    """The mode that a unit can change to."""

    ability_id: int
    into: UnitType
    loops: int
    """How long the change takes."""


MODES: dict[str, Mode] = {
    "SiegeTank": Mode(388, _SIEGED, 68),
    "SiegeTankSieged": Mode(390, _TANK, 68),
    "VikingFighter": Mode(403, _LANDED, 41),
    "VikingAssault": Mode(405, _VIKING, 41),
    "Hellion": Mode(1998, _HELLBAT, 64),
    "HellionTank": Mode(1978, _BY_NAME["Hellion"], 64),
}
"""By the name of the unit's type: upgrades make variants of it."""
