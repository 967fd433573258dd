"""Plays battles of two groups of equal cost on the stand-in, and computes the same battles.

The computation (`Reckoning`) uses the stand-in's numbers but ignores crowding: units walk straight
to the nearest enemy, and through each other. The difference between played and computed battles
therefore shows the effect of crowding: melee units wait for room, and units walk around fighting
units. The units of a played battle and of its computed battle begin at the same places, which are
moved a little at random.
"""

from __future__ import annotations

import math
import random
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from s2clientprotocol import debug_pb2 as debug_pb

from sc2standin.data.unit_types.files import TYPE_BY_NAME
from sc2standin.data.unit_types.kinds import UnitType
from sc2standin.game_time import LOOPS_PER_DATA_S
from tests.standin.sessions import OfflineSession, cheat, step_until
from truth.experiments import ATTACK

PAIRS = (
    *(("Marine", 12, "Zealot", 6), ("Marine", 12, "Zergling", 24), ("Marine", 12, "Roach", 6)),
    *(("Marine", 12, "Hydralisk", 4), ("Marauder", 4, "Zealot", 5), ("Marauder", 4, "Roach", 5)),
    *(("Marauder", 7, "Stalker", 5), ("Stalker", 4, "Roach", 7), ("Stalker", 6, "Hydralisk", 7)),
    *(("Zealot", 6, "Zergling", 24), ("Zealot", 6, "Roach", 6), ("Hydralisk", 4, "Roach", 6)),
)
"""Pairs of unit types, with the sizes of groups that cost the same in minerals plus gas."""
MIDDLE, APART, STRAY = (30.0, 30.0), 7.0, 0.2
"""The meeting point, the distance of the fronts at the start, and the random offset, in cells."""
SPACING, ROWS = 1.2, 6
LONGEST_LOOPS = 3000

Places = list[tuple[UnitType, int, float, float]]


@dataclass(eq=False)
class Fighter:
    """A unit of a computed battle; all times are in game loops."""

    kind: UnitType
    side: int
    x: float
    y: float
    life: float
    shields: float
    target: Fighter | None = None
    ready_at: float = 0.0
    hits_at: float = math.inf

    def gap(self, other: Fighter) -> float:
        """The distance to another unit from edge to edge, in cells."""
        between = math.hypot(other.x - self.x, other.y - self.y)
        return between - self.kind.radius - other.kind.radius

    def take(self, attacker: UnitType) -> None:
        """Subtract the damage of one attack from shields and life."""
        weapon = attacker.weapon
        assert weapon is not None
        damage = weapon.damage
        if weapon.bonus is not None and weapon.bonus[0] in self.kind.attributes:
            damage += weapon.bonus[1]
        for _ in range(weapon.attacks):
            on_shields = min(damage, self.shields)
            self.shields -= on_shields
            if damage > on_shields:
                self.life -= max(0.5, damage - on_shields - self.kind.armor)


def lines_of(pair: tuple[str, int, str, int], rng: random.Random) -> Places:
    """The types, sides and places of the units at the start of a battle."""
    places = []
    for side, (name, count) in enumerate((pair[:2], pair[2:]), 1):
        away = -1.0 if side == 1 else 1.0
        for i in range(count):
            column, row = divmod(i, ROWS)
            x = MIDDLE[0] + away * (APART / 2.0 + column * SPACING)
            y = MIDDLE[1] + (row - (min(count, ROWS) - 1) / 2.0) * SPACING
            strayed = (x + rng.uniform(-STRAY, STRAY), y + rng.uniform(-STRAY, STRAY))
            places.append((TYPE_BY_NAME[name], side, *strayed))
    return places


def played(session: OfflineSession, places: Places) -> bool:
    """True if the first group wins on the stand-in."""
    session.arena(*((kind.id, side, x, y) for kind, side, x, y in places))
    cheat(session, debug_pb.control_enemy)
    for side, goal_x in ((1, MIDDLE[0] + APART), (2, MIDDLE[0] - APART)):
        units = [unit for unit in session.observe().raw_data.units if unit.owner == side]
        session.order(units, ATTACK, (goal_x, MIDDLE[1]))

    def owners() -> set[int]:
        return {unit.owner for unit in session.observe().raw_data.units}

    step_until(session, lambda: owners() != {1, 2}, LONGEST_LOOPS, LOOPS_PER_DATA_S)
    return owners() == {1}


class Reckoning:
    """A computed battle, in which units do not block each other."""

    def __init__(self, places: Places, rng: random.Random) -> None:
        self.alive = [
            Fighter(kind, side, x, y, kind.life, kind.shields) for kind, side, x, y in places
        ]
        self._rng = rng
        self._flying: list[tuple[float, UnitType, Fighter]] = []
        """Attacks that will hit later: the loop of the hit, the attacker's type, and the target."""

    def first_wins(self) -> bool:
        """Fight to the end; returns True if the first group wins."""
        for loop in range(LONGEST_LOOPS):
            for one in self.alive:
                self._act(one, loop)
            for at, kind, target in self._flying:
                if at <= loop:
                    target.take(kind)
            self._flying = [one for one in self._flying if one[0] > loop]
            self.alive = [one for one in self.alive if one.life > 0.0]
            sides = {one.side for one in self.alive}
            if len(sides) < 2:
                return sides == {1}
        return False

    def _act(self, one: Fighter, loop: int) -> None:
        """Let a unit walk for a loop, aim, or hit."""
        weapon, target = one.kind.weapon, one.target
        assert weapon is not None
        farthest = weapon.range + weapon.range_slop
        if target is None or target.life <= 0.0 or one.gap(target) > farthest:
            target = min((foe for foe in self.alive if foe.side != one.side), key=one.gap)
            one.target, one.hits_at = target, math.inf
        distance = one.gap(target)
        if one.hits_at == math.inf and distance > weapon.range:
            share = min(1.0, one.kind.step / math.hypot(target.x - one.x, target.y - one.y))
            one.x += (target.x - one.x) * share
            one.y += (target.y - one.y) * share
        elif one.hits_at == math.inf and one.ready_at <= loop:
            one.hits_at = max(one.ready_at, loop - 1.0) + weapon.damage_point_loops
        if one.hits_at <= loop:
            started = one.hits_at - weapon.damage_point_loops
            pause_s = weapon.cooldown_s + self._rng.uniform(*weapon.delay_s)
            one.ready_at, one.hits_at = started + pause_s * LOOPS_PER_DATA_S, math.inf
            flight_loops = distance / weapon.missile_step if weapon.missile_step else 0.0
            self._flying.append((loop + flight_loops, one.kind, target))


def rates(data_dir: Path, battles: int) -> Iterator[tuple[str, str, str]]:
    """A row for each pair: the name, and the first group's share of wins, computed and played."""
    session = OfflineSession(data_dir)
    for pair in PAIRS:
        won = [0, 0]
        for seed in range(battles):
            rng = random.Random(seed)
            places = lines_of(pair, rng)
            won[0] += Reckoning(places, rng).first_wins()
            won[1] += played(session, places)
        name = f"{pair[1]} {pair[0]} : {pair[3]} {pair[2]}"
        yield name, *(f"{count / battles:.2f}" for count in won)
