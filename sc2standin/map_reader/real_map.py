"""Reads maps of battles: the real maps of SMAC and SMACv2, and duels on bundled maps of SMAC.

A map of the real game is an MPQ archive. Four files of the archive matter:
* File MapScript.galaxy: the units to create, their points, and the target of the enemies' attack.
* File Objects: the coordinates of the points.
* File t3SyncCliffLevel: each cell's height: 0 for a hole, 64 for ground, 128 for high ground.
* File t3CellFlags: bit 0 is set in cells on which units cannot walk: the edges of cliffs.

The script is not run, only searched for the calls that these maps make. A map is refused if no
calls are found in its script, or if the script computes the place of a unit. The unit types are the
stand-in's, with the numbers (life, damage, …) of the maps' unit data.

A duel is a map on which two players play a battle of SMAC, each with the team of SMAC's client.
The map file of a duel is, for example,
`{"format": "sc2pool-standin-scenario/1", "name": "3m_duel", "duel_of": "3m"}`.

Size, ground and the units of player 1 are those of the bundled map that `duel_of` names. The units
of player 2 have the same types, at the same places rotated by 180 degrees, so neither side has an
advantage. In a duel a unit acts only if it is ordered to.

If the key `like` of a map file names a bundled map, the file takes its missing keys from that map.
"""

from __future__ import annotations

import re
import struct
from dataclasses import replace
from importlib import resources

import numpy as np
from numpy.typing import NDArray

from sc2standin.data.unit_types.kinds import UnitType
from sc2standin.data.unit_types.liberty import COPIES, LIBERTY
from sc2standin.game_time import LOOPS_PER_DATA_S
from sc2standin.map_reader.fields import (
    CLIFF,
    MAX_SIDE_CELLS,
    Cluster,
    Fields,
    Ground,
    Point,
    ScenarioError,
)
from sc2standin.map_reader.scenario import (
    MAX_HUNT_LOOPS,
    MAX_UNITS,
    Battle,
    Group,
    Hunt,
    Rule,
    Scenario,
    map_fields,
    scenario_of,
)
from sc2standin.mpq import MAGIC, USER_DATA, MpqError, unpack

MAX_FILE_BYTES = 1 << 20
ENDLESS_LOOPS = 1 << 19
"""The time limit of every game, in loops."""
SCRIPT, OBJECTS, CLIFFS, FLAGS = "MapScript.galaxy", "Objects", "t3SyncCliffLevel", "t3CellFlags"
_TYPES = LIBERTY | COPIES | {"Colosus_RL": COPIES["Colossus_RL"]}
"""The unit types, by their names in the maps. Some maps misspell the name of the Colossus."""

# Each pattern runs in linear time, and matches only numbers with few enough digits for `int`.
_ID = r"(\d{1,10})"
"""A point's id, which is a number of 32 bits."""
_CREATE = re.compile(
    r'CreateUnitsWithDefaultFacing\((\d{1,9}), "(\w{1,99})", 0, (\d{1,9}), (.{1,200}?)\);'
)
_CALL = re.compile(r"\b(?:libNtve_gf_)?(?:CreateUnits\w{0,40}|UnitCreate)\(.{0,100}")
"""Any call that creates units in a script, even if `_CREATE` cannot read the call."""
_ATTACK = re.compile(r'OrderTargeting(Point|UnitGroup)\(AbilityCommand\("attack", 0\), (.+)')
_HUNT = 'OrderTargetingUnit(AbilityCommand("attack", 0), UnitGroupClosestToPoint'
_REAL = r"(\d{1,9}(?:\.\d{0,9})?)"
_PERIOD = re.compile(rf"TriggerAddEventTimePeriodic\(\w{{1,99}}, {_REAL}, c_timeGame\)")
_POINT = re.compile(rf"PointFromId\({_ID}\)")
_ASSIGNED = re.compile(r"\b(\w{1,99}) = ([^;\n]{1,200});")
_PLACED = re.compile(rf'<ObjectPoint Id="{_ID}" Position="{_REAL},{_REAL},')
_GRID_HEADER_BYTES = 32
_CLIFF_LEVEL, _PER_BYTE = 64, 4
"""The amounts that a level and a step of terrain height add to a number in CLIFFS."""
_LEVEL_0 = 207
"""The terrain height of level 0."""
_SIZE = struct.Struct("<II")
_SIZE_AT = {CLIFFS: 8, FLAGS: 24}
"""The offset of width and height in the header of a grid, by the name of the grid's file."""


def read_scenario(content: bytes) -> Scenario:
    """The scenario of a map file of the stand-in or of the real game; raises ScenarioError."""
    if not content.startswith((MAGIC, USER_DATA)):
        return parse_map(content)
    try:
        return _read(content)
    except MpqError as error:
        raise ScenarioError(f"not a map that the stand-in can read: {error}") from None


def _read(archive: bytes) -> Scenario:
    script = _text(archive, SCRIPT)
    points = {
        number: (float(x), float(y)) for number, x, y in _PLACED.findall(_text(archive, OBJECTS))
    }
    calls, created = _CALL.findall(script), _CREATE.findall(script)
    if len(created) < len(calls):
        unread = next(call for call in calls if not _CREATE.search(call))
        raise ScenarioError(f"the map's script creates units in a way that is not read: {unread}")
    if max(len(created), sum(int(count) for count, *_ in created)) > MAX_UNITS:
        raise ScenarioError(f"the map's script creates more than {MAX_UNITS} units")
    values = _values(script)
    groups = tuple(
        Group(_type(name), int(owner), int(count), Cluster(_place(points, _point(values, where))))
        for count, name, owner, where in created
    )
    hunts = _PERIOD.findall(script.partition(_HUNT)[2])  # the period stands after the attack order
    if not (groups or hunts):
        raise ScenarioError("the map's script creates no units")
    if {group.owner for group in groups} - {1, 2}:
        raise ScenarioError("the map's script creates units of a third player")
    ground, size = _ground(archive)
    return Scenario(
        name="Just Another StarCraft II Map",  # all real maps of SMAC and SMACv2 have this name
        size=size,
        playable_area=(0, 0, *size),
        fog=False,
        time_limit_loops=ENDLESS_LOOPS,
        units=groups,
        rules=(_hunt(float(hunts[-1])) if hunts else _battle(script, points),),
        ground=ground,
    )


def _hunt(period_s: float) -> Rule:
    loops = round(period_s * LOOPS_PER_DATA_S)
    if not 1 <= loops <= MAX_HUNT_LOOPS:
        raise ScenarioError(f"the map's enemies look for a target every {period_s} s")
    return Hunt(loops)


def _battle(script: str, points: dict[str, Point]) -> Rule:
    found = _ATTACK.search(script)
    if found is None:
        return Battle(attack=())
    kind, target = found.groups()
    if kind == "UnitGroup":
        return Battle(attack="units")
    return Battle(attack=tuple(_place(points, number) for number in _POINT.findall(target)))


def _ground(archive: bytes) -> tuple[Ground, tuple[int, int]]:
    levels, flags = _grid(archive, CLIFFS, "<u2"), _grid(archive, FLAGS, "u1")
    if levels.shape != flags.shape:
        raise ScenarioError("the map's grids have different sizes")
    walkable = (levels > 0) & (flags & 1 == 0)
    if not walkable.any():
        raise ScenarioError("no unit can walk on the map")
    heights = np.where(walkable, _LEVEL_0 + levels // _PER_BYTE, CLIFF).astype(np.uint8)
    on_level = walkable & (levels % _CLIFF_LEVEL == 0)
    height, width = levels.shape
    return Ground(walkable, on_level, heights), (width, height)


def _grid(archive: bytes, name: str, kind: str) -> NDArray[np.int64]:
    """The numbers of one grid, indexed (y, x)."""
    content = unpack(archive, name, MAX_FILE_BYTES)
    if len(content) < _GRID_HEADER_BYTES:
        raise ScenarioError(f"{name} is cut off")
    width, height = _SIZE.unpack_from(content, _SIZE_AT[name])
    values = np.frombuffer(content[_GRID_HEADER_BYTES:], kind)
    if not 8 <= min(width, height) <= max(width, height) <= MAX_SIDE_CELLS:
        raise ScenarioError(f"the map is {width} x {height}")
    if len(values) != width * height or width * height % 8:
        raise ScenarioError(f"{name} is no grid of {width} x {height}")
    return values.reshape(height, width).astype(np.int64)


def _text(archive: bytes, name: str) -> str:
    return unpack(archive, name, MAX_FILE_BYTES).decode(errors="replace")


def _type(name: str) -> UnitType:
    if name not in _TYPES:
        raise ScenarioError(f"the stand-in has no {name}; it has {', '.join(_TYPES)}")
    return _TYPES[name]


def _values(script: str) -> dict[str, str]:
    """The variables to which a script assigns a single value, each with its value."""
    values: dict[str, set[str]] = {}
    for variable, value in _ASSIGNED.findall(script):
        values.setdefault(variable, set()).add(value)
    return {variable: one.pop() for variable, one in values.items() if len(one) == 1}


def _point(values: dict[str, str], where: str) -> str:
    """The id of the point that a script names, directly or by a variable."""
    point = _POINT.fullmatch(values.get(where, where))
    if point is None:
        raise ScenarioError(f"the map's script creates units at a place that it computes: {where}")
    return point[1]


def _place(points: dict[str, Point], number: str) -> Point:
    if number not in points:
        raise ScenarioError(f"the map has no point {number}")
    return points[number]


_BUNDLED = resources.files("sc2standin") / "maps" / "smac"
_SUFFIX = ".SC2Map"


def parse_map(content: bytes) -> Scenario:
    """The scenario in a map file of the stand-in; raises ScenarioError."""
    fields = map_fields(content)
    if not fields.has("duel_of"):
        return scenario_of(_completed(fields))
    name = fields.take("name", str)
    original = _bundled(fields, "duel_of")
    fields.finish()
    return duel_of(scenario_of(original), name)


def _completed(fields: Fields) -> Fields:
    """A map's own fields, and the fields that it takes from the map that its key `like` names."""
    if fields.has("like"):
        fields.inherit(_bundled(fields, "like"))
    return fields


def _bundled(fields: Fields, key: str) -> Fields:
    """The fields of the bundled map that a key names."""
    maps = {path.name.removesuffix(_SUFFIX): path for path in _BUNDLED.iterdir()}
    return _completed(map_fields(fields.one_of(key, maps).read_bytes()))


def duel_of(scenario: Scenario, name: str) -> Scenario:
    """A duel: the team of a scenario on both sides of its map."""
    team = [group for group in scenario.units if group.owner == 1]
    others = [_opposite(group, scenario.size) for group in team]
    return replace(
        scenario, name=name, players=2, units=(*team, *others), rules=(Battle(attack=()),)
    )


def _opposite(group: Group, size: tuple[int, int]) -> Group:
    """A group like this one, for player 2, at the place rotated by 180 degrees."""
    place = group.place
    assert isinstance(place, Cluster), "all teams of the bundled maps stand in clusters"
    x, y = place.centre
    return replace(group, owner=2, place=Cluster((size[0] - x, size[1] - y)))
