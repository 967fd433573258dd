"""Reads a map file: units, scoring rules and time limit.

A map of the stand-in is a small JSON file with the name of the real map that it imitates. The
reader checks everything, so that an invalid map makes `create_game` fail (InvalidMapData) instead
of a later request.

An unknown key is an error. No code depends on a map's name: a new map needs only a new file.

A map's economy sets the minerals and gas at the start, and the types that can be made. On a map
with a melee, each of two players has a town at one of two starting places. A player without
structures has lost.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from sc2standin.cost import StepCost
from sc2standin.data.unit_types.files import TYPE_BY_ID, TYPE_BY_NAME
from sc2standin.data.unit_types.kinds import UnitType
from sc2standin.data.unit_types.liberty import BY_ID, BY_NAME
from sc2standin.map_reader.fields import (
    Fields,
    Ground,
    Place,
    Point,
    Points,
    ScenarioError,
    read_ground,
    read_place,
)

FORMAT = "sc2pool-standin-scenario/1"
MAX_UNITS = 700
"""The most units on a map at the same time, whether the map or a command created them."""
MAX_PLAYERS = 2
MAX_BUILD = 1_000_000
MAX_HUNT_LOOPS = 1 << 10
"""The longest interval of a hunt, in loops."""

Taken = Literal["moves", "vanishes"]
Survivors = Literal["stay", "rejoin"]


@dataclass(frozen=True)
class Group:
    """Units of one type that are placed together."""

    type: UnitType
    owner: int
    count: int
    place: Place


@dataclass(frozen=True)
class Collect:
    """The targets for the client's units. A unit takes a target at the distance `reach` or nearer.

    A target that is taken either moves to a new place, or vanishes. When all targets have vanished,
    a new set of targets appears. Each target that is taken gives the player `score` and `minerals`.
    """

    target: UnitType
    count: int
    place: Place
    reach: float
    score: int
    minerals: int
    taken: Taken


@dataclass(frozen=True)
class Bounty:
    """The score for the death of a unit with this type and this owner."""

    type: UnitType
    owner: int
    score: int


@dataclass(frozen=True)
class Waves:
    """The units that are created whenever all enemies are dead.

    The client's surviving units stay where they are (`stay`), or are removed and created again
    among the new units of their type, with the same life (`rejoin`).
    """

    units: tuple[Group, ...]
    survivors: Survivors
    can_stall: bool
    """True if on the real map the next wave may be missing; see the temper `stalled-map`."""


@dataclass(frozen=True)
class Income:
    """The score for each unit of minerals or gas that is brought to a town hall."""

    score: int


@dataclass(frozen=True)
class Created:
    """The score for each unit of this type that the client trains."""

    type: UnitType
    score: int


@dataclass(frozen=True)
class Battle:
    """The enemies attack. When all units of both sides are dead, they are created again.

    The game does not end when the client's last unit dies.
    """

    attack: tuple[Point, ...] | Literal["units"]
    """The enemies' target: one point, a random point between two points, or the client's units.

    If it is empty, the enemies do not attack.
    """


@dataclass(frozen=True)
class Hunt:
    """Every `every_loops` loops, each enemy without an order attacks the client's nearest unit.

    The game does not end when the client's last unit dies.
    """

    every_loops: int


Rule = Collect | Bounty | Waves | Income | Created | Battle | Hunt


@dataclass(frozen=True)
class Scenario:
    """One map. Coordinates are in cells. The playable area is (x0, y0, x1, y1)."""

    name: str
    size: tuple[int, int]
    playable_area: tuple[int, int, int, int]
    fog: bool
    time_limit_loops: int
    units: tuple[Group, ...]
    rules: tuple[Rule, ...]
    stamp: bool = False
    """True if each observation carries a stamp as its identification; see `process.state`."""
    players: int = 1
    """The most clients that can play the map. On a map for two, a player without units has lost."""
    canned: bool = False
    """True if nothing happens on the map and observations are prepared; see `process.session`."""
    step_cost: StepCost | None = None
    economy: EconomyRules | None = None
    army_selected: bool = False
    """True if the client's units are selected at the start and after each wave."""
    camera_on_workers: bool = False
    """True if the camera begins at the client's workers, not 3 cells below the area's centre."""
    ground: Ground | None = None
    """The cells of the map; None if all of the playable area is flat and open."""
    melee: MeleeRules | None = None
    endless: bool = False
    """True if the game continues even if a player has no units or structures left."""
    made_with_build: int = 0
    """The build of the game whose editor made the map; 0 if the map does not name one."""

    @property
    def is_battle(self) -> bool:
        """True for SMAC's and SMACv2's maps: games continue when the client's last unit is dead."""
        return any(isinstance(rule, Battle | Hunt) for rule in self.rules)

    def creatable(self, type_id: int) -> UnitType | None:
        """The type with this id; None if debug commands cannot create units of the type."""
        return (BY_ID if self.is_battle else TYPE_BY_ID).get(type_id)


def map_fields(content: bytes) -> Fields:
    """The fields of a map file, after a check of its `format`; raises `ScenarioError`."""
    try:
        loaded = json.loads(content)
    except (ValueError, RecursionError) as error:
        raise ScenarioError(
            f"not a stand-in map (JSON expected; Blizzard's maps need the real game): {error}"
        ) from None
    fields = Fields("map", loaded)
    if fields.take("format", str) != FORMAT:
        raise ScenarioError(f"map.format must be {FORMAT!r}")
    return fields


def scenario_of(fields: Fields) -> Scenario:
    """The scenario in the fields of a map file; raises `ScenarioError`."""
    size = fields.size("size")
    scenario = Scenario(
        name=fields.take("name", str),
        size=size,
        playable_area=fields.area("playable_area", size),
        fog=fields.take("fog", bool),
        time_limit_loops=fields.count("time_limit_loops", 1 << 19),
        units=fields.items("units", _group),
        rules=fields.items("rules", lambda rule: rule.one_of("kind", _RULES)(rule)),
        stamp=fields.flag("stamp"),
        players=fields.count_or("players", MAX_PLAYERS, 1),
        canned=fields.flag("canned"),
        step_cost=fields.part("step_cost", _step_cost),
        economy=fields.part("economy", _economy),
        army_selected=fields.flag("army_selected"),
        camera_on_workers=fields.flag("camera_on_workers"),
        ground=read_ground(fields, size),
        melee=fields.part("melee", _melee),
        endless=fields.flag("endless"),
        made_with_build=fields.count_or("made_with_build", MAX_BUILD, 0),
    )
    fields.finish()
    if _placed(scenario) > MAX_UNITS:
        raise ScenarioError(f"map.units and map.rules must place at most {MAX_UNITS} units in all")
    if scenario.melee is not None and scenario.economy is None:
        raise ScenarioError("map.melee needs an economy, and there is no map.economy")
    x0, y0, x1, y1 = scenario.playable_area
    if scenario.ground is not None and not scenario.ground.walkable[y0:y1, x0:x1].any():
        raise ScenarioError("map.ground has no place for units in the playable area")
    scored = any(isinstance(rule, Income | Created) for rule in scenario.rules)
    if scored and scenario.economy is None:
        raise ScenarioError("map.rules score an economy, and there is no map.economy")
    if scenario.canned and (scenario.fog or scenario.stamp):
        raise ScenarioError("map.canned goes with neither map.fog nor map.stamp")
    if scenario.canned and scenario.players > 1:
        raise ScenarioError("map.canned is for one player")
    return scenario


def _placed(scenario: Scenario) -> int:
    """The number of units on the map at the start, plus its targets and the units of its waves."""
    count = sum(group.count for group in scenario.units)
    for rule in scenario.rules:
        match rule:
            case Collect():
                count += rule.count
            case Waves():
                count += sum(group.count for group in rule.units)
    return count


_TAKEN: dict[str, Taken] = {"moves": "moves", "vanishes": "vanishes"}
_SURVIVORS: dict[str, Survivors] = {"stay": "stay", "rejoin": "rejoin"}


def _group(fields: Fields) -> Group:
    group = Group(
        type=fields.one_of("type", BY_NAME),
        owner=fields.count("owner", 16),
        count=fields.count("count", MAX_UNITS),
        place=read_place(fields, "place"),
    )
    place = group.place
    if isinstance(place, Points) and any(len(one) != group.count for one in place.choices):
        raise ScenarioError(f"{group.count} of {group.type.name} need as many points in each list")
    return group


def _step_cost(fields: Fields) -> StepCost:
    return StepCost(burn_ms=fields.cost_ms("burn_ms"), sleep_ms=fields.cost_ms("sleep_ms"))


_ATTACKED: dict[str, Literal["units"]] = {"units": "units"}
_RULES: dict[str, Callable[[Fields], Rule]] = {
    "collect": lambda fields: Collect(
        target=fields.one_of("target", BY_NAME),
        count=fields.count("count", MAX_UNITS),
        place=read_place(fields, "place"),
        reach=fields.distance("reach"),
        score=fields.take("score", int),
        minerals=fields.take("minerals", int),
        taken=fields.one_of("taken", _TAKEN),
    ),
    "bounty": lambda fields: Bounty(
        type=fields.one_of("type", BY_NAME),
        owner=fields.count("owner", 16),
        score=fields.take("score", int),
    ),
    "waves": lambda fields: Waves(
        units=fields.items("units", _group),
        survivors=fields.one_of("survivors", _SURVIVORS),
        can_stall=fields.flag("can_stall"),
    ),
    "income": lambda fields: Income(fields.take("score", int)),
    "created": lambda fields: Created(fields.one_of("type", BY_NAME), fields.take("score", int)),
    "battle": lambda fields: Battle(fields.points_or_one_of("attack", _ATTACKED)),
    "hunt": lambda fields: Hunt(fields.count("every_loops", MAX_HUNT_LOOPS)),
}


MAX_MONEY = 1_000_000
CARRIES_MINERALS, CARRIES_VESPENE = 271, 273
"""The ids of the buffs that show that a worker carries minerals or gas."""


@dataclass(frozen=True)
class EconomyRules:
    """One map's economy."""

    minerals: int
    vespene: int
    makes: tuple[UnitType, ...]
    """The types that can be trained and built."""
    mined_from_start: Point | None
    """The mineral field from which all workers gather; the first workers begin in loop 1."""


def _economy(fields: Fields) -> EconomyRules:
    return EconomyRules(
        minerals=int(fields.number("minerals", MAX_MONEY)),
        vespene=int(fields.number("vespene", MAX_MONEY)),
        makes=fields.several_of("makes", TYPE_BY_NAME),
        mined_from_start=fields.point_or_none("mined_from_start"),
    )


OFFSETS = (
    *((-3.0, float(y)) for y in range(-3, 4)),
    *((float(x), 3.0) for x in range(-2, 3)),
)
"""The offsets of the first workers from a command centre with minerals to its upper left."""


@dataclass(frozen=True)
class MeleeRules:
    """The rules of a map's melee."""

    starts: tuple[Point, Point]
    """The client begins at one place, drawn at random, and the computer at the other place."""
    any_race: bool = False
    """True if Zerg and Protoss may join; they get a Terran town."""


def _melee(fields: Fields) -> MeleeRules:
    one, other = fields.points("starts", 2)
    return MeleeRules((one, other), fields.flag("any_race"))
