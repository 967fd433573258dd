"""Measures the stand-in as a client would, for comparisons with the game's data and replays.

A fact has the real game's value with its source, and an experiment that measures the stand-in's
value. In the game's data a second has 16 loops. In incomes per minute, a minute has 1344 loops.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from s2clientprotocol import common_pb2 as common
from s2clientprotocol import debug_pb2 as debug_pb
from s2clientprotocol import error_pb2 as error_pb
from s2clientprotocol import raw_pb2 as raw_pb

from sc2standin.data.unit_types.files import TYPE_BY_NAME
from sc2standin.data.unit_types.kinds import UnitType
from sc2standin.game_time import LOOPS_PER_DATA_S
from tests.standin.sessions import OfflineSession, cheat, command, step_until

XML, REPLAYS, MEASURED, GEOMETRY = "XML", "replays", "measured games", "geometry"
MOVE, ATTACK, GATHER, BUILD_REFINERY = 16, 23, 295, 320
A_MINUTE_LOOPS = 1344


@dataclass(frozen=True)
class Fact:
    """One fact, with its experiment.

    Attributes:
        measure: the experiment, which returns the stand-in's value.
        tolerance: a difference that a client cannot measure, and that is allowed even above 2 %.
    """

    name: str
    real: float
    source: str
    measure: Callable[[OfflineSession], float]
    tolerance: float = 0.0

    def agrees(self, ours: float) -> bool:
        """True if the stand-in's value is within 2 % of the real one, or within the tolerance."""
        return abs(ours - self.real) <= max(abs(self.real) * 0.02, self.tolerance)


def facts() -> Iterator[Fact]:
    """All facts in the order of the printed table."""
    for name in ("Marine", "Roach", "Hydralisk", "Zealot", "Hellion", "Stalker", "Thor"):
        kind = TYPE_BY_NAME[name]
        assert kind.weapon is not None
        real = DAMAGE_POINT_S[name] * LOOPS_PER_DATA_S + _flight_loops(name)
        aimed = partial(_to_hit, kind)
        yield Fact(f"{name}: loops from aim to hit", real, XML, aimed, tolerance=1.0)
    for name, period_s in PERIOD_S.items():
        # A cooldown's random part is half a loop on average; a battlecruiser's has no random part.
        real = period_s * LOOPS_PER_DATA_S + (0.0 if name == "Battlecruiser" else 0.5)
        yield Fact(f"{name}: loops between hits", real, XML, partial(_period, TYPE_BY_NAME[name]))
    for what, source, reals, measure in (
        ("cells a second", XML, SPEED_PER_S, _speed),
        ("acceleration", XML, ACCELERATION, _acceleration),
        ("life a second", XML, LIFE_PER_S, partial(_rise, "health")),
        ("shields a second", XML, SHIELDS_PER_S, partial(_rise, "shield")),
        ("degrees a second", XML, TURNS_PER_S, _turn),
        ("loops to build", REPLAYS, BUILT_LOOPS, _built),
        ("loops between births", REPLAYS, APART_LOOPS, _apart),
    ):
        for name, real in reals.items():
            yield Fact(f"{name}: {what}", real, source, partial(measure, TYPE_BY_NAME[name]))
    for way, goal in (("along an axis", (20.0, 0.0)), ("on a diagonal", (14.0, -14.0))):
        walked = partial(_course, goal)
        yield Fact(f"Marine: cells {way}", math.hypot(*goal), XML, walked, tolerance=CELLS_A_LOOP)
    around = WALL_WIDTH + 2.0 * _around_a_corner(TYPE_BY_NAME["Marine"].room)
    walked = partial(_course, (12.0, 0.0), wall=True)
    yield Fact("Marine: cells around a wall", around, GEOMETRY, walked)
    yield Fact("minerals a minute, an SCV near", 62.5, MEASURED, partial(_minerals, range(4)))
    yield Fact("minerals a minute, an SCV far", 54.75, MEASURED, partial(_minerals, range(4, 8)))
    yield Fact("minerals a minute, three on a field", 145, MEASURED, _crowded)
    # A town has four near and four far fields. The fact "three on a field" is one field's income.
    for scvs, earned in ((6, 359.5), (12, 704), (16, 938), (22, 1089)):
        yield Fact(f"minerals a minute, {scvs} SCVs", earned, MEASURED, partial(_town, scvs))
    yield Fact("minerals in the first 320 loops, 12 SCVs", 120, REPLAYS, _opening)
    # The collection rate is between 671 and 783 in the replays.
    yield Fact("collection rate, 12 SCVs", 727, REPLAYS, _rate, tolerance=56)
    yield Fact("gas a minute, an SCV", 59, MEASURED, partial(_gas, 1))
    yield Fact("gas a minute, three SCVs", 162, MEASURED, partial(_gas, 3))


DAMAGE_POINT_S = {
    **{"Marine": 0.05, "Roach": 0.167, "Hydralisk": 0.208, "Zealot": 0.0, "Hellion": 0.25},
    **{"Stalker": 0.167, "Thor": 0.831},
}
MISSILE_PER_S = {"Roach": 18.75, "Hydralisk": 40.0, "Stalker": 18.75}
PERIOD_S = {
    **{"Marine": 0.8608, "Roach": 2.0, "Zergling": 0.696, "Zealot": 1.2, "Stalker": 1.87},
    **{"Marauder": 1.5, "Hydralisk": 0.825, "Battlecruiser": 0.225},
}
SPEED_PER_S = {
    **{"Marine": 2.25, "Zergling": 2.9531, "Reaper": 3.75, "Stalker": 2.9531, "Roach": 2.25},
    **{"Medivac": 2.5, "Mutalisk": 4.0, "Observer": 1.875},
}
ACCELERATION = {
    **{"SCV": 2.5, "Medivac": 2.25, "VikingFighter": 2.625, "Banshee": 3.25},
    **{"Battlecruiser": 1.0, "Observer": 2.125},
}
LIFE_PER_S = {"Roach": 0.2734, "Zergling": 0.2734, "Mutalisk": 1.0, "Reaper": 2.0}
SHIELDS_PER_S = {"Zealot": 2.0, "Observer": 2.0}
TURNS_PER_S = {"SiegeTank": 360.0, "Cyclone": 360.0}
"""The tables DAMAGE_POINT_S to TURNS_PER_S come from build 81433's XML, not the stand-in's data."""
BUILT_LOOPS = {
    **{"SupplyDepot": 480, "Barracks": 1040, "Factory": 960, "MissileTurret": 400},
    **{"CommandCenter": 1600},
}
"""Each structure's build time in loops; all replays of matching game versions show this time."""
APART_LOOPS = {"SCV": 271, "Marine": 399}
"""The most frequent number of loops between two finished units, which is the build time minus 1."""
TRAINERS = {"SCV": "CommandCenter", "Marine": "Barracks"}
CELLS_A_LOOP = SPEED_PER_S["Marine"] / LOOPS_PER_DATA_S
COURSE = (16.0, 50.0)
"""The place where a walk starts; the ground beyond it is open for 20 cells."""
WALL_WIDTH, WALL_HEIGHT, TO_WALL = 2.0, 6.0, 5.0
"""The size of a wall of three supply depots, and its distance from a walk's start, in cells."""
GAP = 0.05
"""The attacker's distance to the target is the attacker's range minus this gap, in cells."""


def _flight_loops(name: str) -> float:
    speed = MISSILE_PER_S.get(name)
    if speed is None:
        return 0.0
    kind = TYPE_BY_NAME[name]
    assert kind.weapon is not None
    return (kind.weapon.range - GAP + kind.radius) / speed * LOOPS_PER_DATA_S


def _pair(session: OfflineSession, kind: UnitType) -> raw_pb.Unit:
    """Create an attacker, and in its range a target that does not attack; returns the target."""
    target = TYPE_BY_NAME["CommandCenter"]
    assert kind.weapon is not None
    distance = kind.radius + target.radius + kind.weapon.range - GAP
    session.arena((kind.id, 1, 30.0 - distance, 30.0), (target.id, 2, 30.0, 30.0))
    return session.one(target.id)


def _hits(session: OfflineSession, kind: UnitType, loops: int) -> list[int]:
    """The loops in which the target is hit."""
    target = _pair(session, kind)
    assert session.order(session.units(kind.id), ATTACK, target=target) == 1
    life, found = target.health, []
    for loop in range(loops):
        session.step()
        target = session.one(TYPE_BY_NAME["CommandCenter"].id)
        if target.health < life:
            found.append(loop)
            session.set_value(target, "Life", target.health_max)
        life = target.health_max if found and found[-1] == loop else target.health
    return found


def _to_hit(kind: UnitType, session: OfflineSession) -> float:
    # A unit that has just been created may attack from its second loop on.
    return _hits(session, kind, 60)[0] - 1


def _period(kind: UnitType, session: OfflineSession) -> float:
    hits = _hits(session, kind, 2400)
    return (hits[-1] - hits[0]) / (len(hits) - 1)


def _walk(session: OfflineSession, kind: UnitType, loops: int) -> list[float]:
    """A walking unit's distance from its start after each loop."""
    session.arena((kind.id, 1, 10.0, 30.0))
    assert session.order(session.one(kind.id), MOVE, (60.0, 55.0)) == 1
    ways = []
    for _ in range(loops):
        session.step()
        at = session.one(kind.id).pos
        ways.append(math.dist((at.x, at.y), (10.0, 30.0)))
    return ways


def _speed(kind: UnitType, session: OfflineSession) -> float:
    ways = _walk(session, kind, 80)
    return ways[-1] - ways[-1 - LOOPS_PER_DATA_S]


def _acceleration(kind: UnitType, session: OfflineSession) -> float:
    ways = _walk(session, kind, 9)
    return (ways[8] - 2 * ways[4] + ways[0]) / 16 * LOOPS_PER_DATA_S**2


def _rise(what: str, kind: UnitType, session: OfflineSession) -> float:
    session.arena((kind.id, 1, 30.0, 30.0))
    session.set_value(session.one(kind.id), "Life" if what == "health" else "Shields", 5)
    session.step(20)
    before = getattr(session.one(kind.id), what)
    session.step(LOOPS_PER_DATA_S)
    return float(getattr(session.one(kind.id), what) - before)


def _turn(kind: UnitType, session: OfflineSession) -> float:
    session.arena((kind.id, 1, 10.0, 30.0))
    before = session.one(kind.id)
    session.order(before, MOVE, (10.0, 60.0))
    session.step()
    return math.degrees(abs(session.one(kind.id).facing - before.facing)) * LOOPS_PER_DATA_S


def _around_a_corner(room: float) -> float:
    """The length of the shortest path past the wall, for a unit that keeps `room` cells away."""
    across = WALL_HEIGHT / 2.0
    straight = math.sqrt(TO_WALL**2 + across**2 - room**2)
    turn = math.atan2(across, TO_WALL) + math.asin(room / math.hypot(TO_WALL, across))
    return straight + room * turn


def _course(goal: tuple[float, float], session: OfflineSession, *, wall: bool = False) -> float:
    """The length of a marine's path to the goal, computed from its time and speed, in cells."""
    _begin_town(session, 0)
    (x, y), (kind, depot) = COURSE, (TYPE_BY_NAME["Marine"], TYPE_BY_NAME["SupplyDepot"])
    walls = [(depot.id, 1, x + 6.0, y + off) for off in (-2.0, 0.0, 2.0)] if wall else []
    session.create((kind.id, 1, x, y), *walls)
    session.step()
    session.order(session.one(kind.id), MOVE, (x + goal[0], y + goal[1]))
    session.step()
    loops = step_until(session, lambda: not session.one(kind.id).orders, each=1)
    return loops * CELLS_A_LOOP


def _rich_town(session: OfflineSession) -> tuple[list[int], common.Point]:
    """Begin a town with all resources and tech; returns the SCVs and the command centre's place."""
    workers, _ = _begin_town(session, 12)
    cheat(session, debug_pb.all_resources, debug_pb.tech_tree)
    return workers, session.one(TYPE_BY_NAME["CommandCenter"].id).pos


def _built(kind: UnitType, session: OfflineSession) -> float:
    workers, home = _rich_town(session)
    before = {unit.tag for unit in session.units(kind.id)}

    def progress() -> list[float]:
        return [u.build_progress for u in session.units(kind.id) if u.tag not in before]

    place = _free_place(session, kind, home)
    session.order(workers[:1], kind.build_ability_id, place)
    step_until(session, progress, each=1)
    return step_until(session, lambda: progress()[0] >= 1.0, each=1)


def _free_place(session: OfflineSession, kind: UnitType, home: common.Point) -> tuple[float, float]:
    """The nearest free place for a structure, to the right of a town hall."""
    places = [(home.x + distance, home.y - 4) for distance in range(4, 16)]
    results = session.can_place(kind.build_ability_id, *places)
    return places[results.index(error_pb.Success)]


def _apart(kind: UnitType, session: OfflineSession) -> float:
    _, home = _rich_town(session)
    trainer = TYPE_BY_NAME[TRAINERS[kind.name]]
    if not session.units(trainer.id):
        session.create((trainer.id, 1, home.x + 7.0, home.y - 7.0))
        session.step()
    count = len(session.units(kind.id))
    train = command(session.one(trainer.id), kind.build_ability_id)
    session.act(train, train)
    step_until(session, lambda: len(session.units(kind.id)) > count, each=1)
    return step_until(session, lambda: len(session.units(kind.id)) > count + 1, each=1)


def _begin_town(session: OfflineSession, scvs: int) -> tuple[list[int], list[raw_pb.Unit]]:
    """Begin a town with this many SCVs; returns the SCVs' tags, and the fields, nearest first."""
    session.start("Melee/Simple64")
    home = session.one(TYPE_BY_NAME["CommandCenter"].id).pos
    if scvs > 12:
        session.create((TYPE_BY_NAME["SCV"].id, 1, home.x + 3.5, home.y + 3.5, scvs - 12))
    workers = [unit.tag for unit in session.units(TYPE_BY_NAME["SCV"].id)]
    session.kill(workers[scvs:])
    session.step()
    fields = session.units(TYPE_BY_NAME["MineralField"].id)
    fields.sort(key=lambda one: math.dist((one.pos.x, one.pos.y), (home.x, home.y)))
    return workers[:scvs], fields[:8]


def _gather(session: OfflineSession, workers: list[int], fields: list[raw_pb.Unit]) -> None:
    """Send each worker to a mineral field, one field after the other."""
    for i, worker in enumerate(workers):
        session.order(worker, GATHER, target=fields[i % len(fields)])


def _earned(session: OfflineSession, what: str, minutes: int = 4) -> float:
    """The income of a town per minute, after its first 400 loops."""
    session.step(400)
    before = getattr(session.observe().score.score_details, what)
    session.step(minutes * A_MINUTE_LOOPS)
    return float(getattr(session.observe().score.score_details, what) - before) / minutes


def _minerals(which: range, session: OfflineSession) -> float:
    """The mean income of an SCV at the fields `which`; field 0 is the nearest to the town."""
    earned = 0.0
    for index in which:
        workers, fields = _begin_town(session, 1)
        _gather(session, workers, fields[index : index + 1])
        earned += _earned(session, "collected_minerals")
    return earned / len(which)


def _crowded(session: OfflineSession) -> float:
    """The income per field of a town that has eight fields and three SCVs on each field."""
    workers, fields = _begin_town(session, 24)
    _gather(session, workers, fields)
    return _earned(session, "collected_minerals") / len(fields)


def _town(scvs: int, session: OfflineSession) -> float:
    _gather(session, *_begin_town(session, scvs))
    return _earned(session, "collected_minerals")


def _opening(session: OfflineSession) -> float:
    _gather(session, *_begin_town(session, 12))
    session.step(320)
    return session.observe().score.score_details.collected_minerals


def _rate(session: OfflineSession) -> float:
    """The mean of ten collection rates that the score shows."""
    _town(12, session)
    shown = []
    for _ in range(10):
        session.step(240)
        shown.append(session.observe().score.score_details.collection_rate_minerals)
    return sum(shown) / len(shown)


def _gas(scvs: int, session: OfflineSession) -> float:
    session.start("CollectMineralsAndGas")
    cheat(session, debug_pb.all_resources)
    home = session.one(TYPE_BY_NAME["CommandCenter"].id).pos
    geysers = session.units(TYPE_BY_NAME["VespeneGeyser"].id)
    geyser = min(geysers, key=lambda u: math.dist((u.pos.x, u.pos.y), (home.x, home.y)))
    builder, *others = session.units(TYPE_BY_NAME["SCV"].id)
    session.order(builder, BUILD_REFINERY, target=geyser)
    session.step(800)
    refinery = session.one(TYPE_BY_NAME["Refinery"].id)
    session.kill(builder)
    _gather(session, [worker.tag for worker in others[:scvs]], [refinery])
    return _earned(session, "collected_vespene", minutes=2)


def measured(data_dir: Path) -> Iterator[tuple[Fact, float]]:
    """Each fact with the stand-in's value; `data_dir` is the folder of an installed stand-in."""
    for fact in facts():
        yield fact, fact.measure(OfflineSession(data_dir))


def row(fact: Fact, ours: float) -> tuple[Any, ...]:
    """A row of the table."""
    off = (ours - fact.real) / fact.real if fact.real else ours
    return fact.name, f"{fact.real:g}", f"{ours:.4g}", f"{off:+.1%}", fact.source
