"""Combat and collisions: target choice, damage, and pushing overlapping units apart.

All pairs of mobile units are computed together, as square arrays. Everything that depends only on
which units are alive (`Roster`) is kept until a unit is created or dies.

Rules it keeps:
- a weapon fires if its target is in range, edge to edge, and its cooldown is over; hits land at
  once; all hits of a loop count, including those of units that die in that loop;
- a unit with a move order does not fire; a unit that holds its position does not walk;
- a unit without a named target keeps its current target while that target is in range; otherwise
  it takes the nearest enemy within its scan range. The opponent's units scan as far as they see.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from sc2pool.standin import unit_types
from sc2pool.standin.abilities import OrderKind
from sc2pool.standin.world import ENEMY, ME, NEUTRAL, Bools, Floats, Ints, World

MIN_SCAN = 5.0
SCAN_MARGIN = 0.5
"""Scan range beyond the weapon's range, in cells; the scan range is at least MIN_SCAN."""

PUSH_SHARE = 0.25
"""Share of an overlap that each of the two units moves away in one loop."""


class Roster:
    """The mobile units, and the arrays that depend only on them."""

    def __init__(self, world: World) -> None:
        self.version = world.population_version
        self.rows = np.flatnonzero(unit_types.MOBILE[world.type_row])
        types = world.type_row[self.rows]
        owner = world.owner[self.rows]
        radius = unit_types.RADIUS[types]
        self.radius_sum = radius[:, None] + radius[None, :]
        np.fill_diagonal(self.radius_sum, -np.inf)  # a unit does not collide with itself
        hostile = (
            (owner[:, None] != owner[None, :]) & (owner != NEUTRAL) & (owner != NEUTRAL)[:, None]
        )
        self.has_enemies = bool(hostile.any())
        armed = unit_types.ARMED[types]
        self.not_a_target = np.where(hostile & armed[:, None], 0.0, np.inf)
        self.range = unit_types.RANGE[types]
        scan = np.maximum(self.range + SCAN_MARGIN, MIN_SCAN)
        self.scan = np.where(owner == ENEMY, np.maximum(unit_types.SIGHT[types], scan), scan)
        self.hit = unit_types.HIT[types[:, None], types[None, :]]
        self.cooldown_loops = unit_types.COOLDOWN_LOOPS[types]
        self.half_step = unit_types.STEP[types] / 2
        self.crowd = len(self.rows) > 1
        self.index = np.arange(len(self.rows))
        # One element more than rows: row -1 (no such unit) maps to index -1.
        self.index_of_row = np.full(world.count + 1, -1)
        self.index_of_row[self.rows] = self.index


class Geometry(NamedTuple):
    """Relative positions of the roster's units; [i, j] is from i to j."""

    offset: Floats
    distance: Floats
    gap: Floats
    """Distance between the edges: negative if two overlap, infinite from a unit to itself."""


def measure(world: World, roster: Roster) -> Geometry:
    """The roster's current geometry."""
    pos = world.pos[roster.rows]
    offset = pos[None, :, :] - pos[:, None, :]
    distance = np.sqrt(offset[:, :, 0] ** 2 + offset[:, :, 1] ** 2)
    return Geometry(offset, distance, distance - roster.radius_sum)


class Engagement(NamedTuple):
    """The result of this loop's combat for movement; one element per unit of the roster."""

    target: Ints
    """Roster index of each unit's target, -1 for none."""
    in_range: Bools


def engage(world: World, roster: Roster, geometry: Geometry) -> Engagement:
    """Choose targets, fire the weapons that are ready, and apply the damage."""
    rows = roster.rows
    order = world.order[rows]
    target = _choose_targets(world, roster, geometry, order)
    has_target = target >= 0
    in_range = has_target & (geometry.gap[roster.index, target] <= roster.range)
    world.engaged[rows] = np.where(in_range, world.tag[rows[target]], 0)
    firing = np.flatnonzero(in_range & (world.ready_at[rows] <= world.loop))
    if len(firing):
        _fire(world, roster, firing, target[firing])
    return Engagement(np.where(has_target & (order != OrderKind.HOLD), target, -1), in_range)


def _choose_targets(world: World, roster: Roster, geometry: Geometry, order: Ints) -> Ints:
    rows = roster.rows
    gap = geometry.gap + roster.not_a_target
    everyone = roster.index
    nearest = gap.argmin(axis=1)
    reach = np.where(order == OrderKind.HOLD, roster.range, roster.scan)
    target = np.where(gap[everyone, nearest] <= reach, nearest, -1)
    kept = roster.index_of_row[world.rows_of(world.engaged[rows])]
    keeps = (kept >= 0) & (gap[everyone, kept] <= roster.range)
    target[keeps] = kept[keeps]
    target[order == OrderKind.MOVE] = -1
    named = order == OrderKind.ATTACK
    if named.any():
        named &= world.order_tag[rows] != 0
        target[named] = roster.index_of_row[world.rows_of(world.order_tag[rows[named]])]
    return target


def _fire(world: World, roster: Roster, firing: Ints, target: Ints) -> None:
    rows = roster.rows
    shooters = rows[firing]
    damage = np.zeros(world.count)
    np.add.at(damage, rows[target], roster.hit[firing, target])
    to_shields = np.minimum(damage, world.shields)
    to_life = np.minimum(damage - to_shields, np.maximum(world.life, 0.0))
    world.shields -= to_shields
    world.life -= to_life
    world.doomed += world.tag[(damage > 0.0) & (world.life <= 0.0)].tolist()
    mine = world.owner == ME
    world.ledger.taken_life += float(to_life[mine].sum())
    world.ledger.taken_shields += float(to_shields[mine].sum())
    world.ledger.dealt_life += float(to_life[~mine].sum())
    world.ledger.dealt_shields += float(to_shields[~mine].sum())
    # A weapon that became ready within the last loop keeps the fraction of a loop that it waited,
    # so that continuous fire has exactly the weapon's period.
    ready = world.ready_at[shooters]
    start = np.where(world.loop - ready < 1.0, ready, float(world.loop))
    world.ready_at[shooters] = start + roster.cooldown_loops[firing]
    aim = world.pos[rows[target]] - world.pos[shooters]
    world.facing[shooters] = np.arctan2(aim[:, 1], aim[:, 0]) % (2 * np.pi)


def push_apart(roster: Roster, geometry: Geometry) -> Floats | None:
    """Push of each unit by the units it overlaps, in cells; None if no units overlap."""
    overlap = np.minimum(geometry.gap, 0.0)
    if not overlap.any():
        return None
    # Two units at the same point separate along the x axis, the older one to the left.
    same_spot = (geometry.distance == 0.0) & (overlap < 0.0)
    direction = (
        geometry.offset / np.where(same_spot, 1.0, np.maximum(geometry.distance, 1e-9))[:, :, None]
    )
    if same_spot.any():
        older = np.triu(np.ones(same_spot.shape), 1)
        direction[:, :, 0] = np.where(same_spot, older - older.T, direction[:, :, 0])
    push = (direction * overlap[:, :, None]).sum(axis=1) * PUSH_SHARE
    length = np.sqrt((push**2).sum(axis=1))
    limit = np.minimum(1.0, roster.half_step / np.maximum(length, 1e-9))
    return np.asarray(push * limit[:, None])


def loops_until_contact(roster: Roster, geometry: Geometry, velocity: Floats) -> float:
    """Loops until, at these velocities, a unit first touches or scans another one."""
    closing = velocity[:, None, :] - velocity[None, :, :]
    speed = np.sqrt((closing**2).sum(axis=2))
    slack = np.minimum(geometry.gap, geometry.gap + roster.not_a_target - roster.scan[:, None])
    with np.errstate(divide="ignore", invalid="ignore"):
        loops = np.where(speed > 0.0, slack / speed, np.inf)
    return float(loops.min())
