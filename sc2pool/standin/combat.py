"""Who sees whom, who fires at whom, what it does, and who stands in whose way.

All pairs of units that can move are looked at together, as square arrays. What depends only on
who is alive (`Roster`) is kept until somebody is born or dies.

Rules it keeps:
- a weapon fires when its target is in range, edge to edge, and its cooldown is over; hits land
  at once; all of one loop's hits count, also those of units that die in it;
- a unit under a move order does not fire; one that holds its position does not walk;
- without a named target a unit goes on firing at the one it fires at while that one is in range,
  otherwise it takes the nearest enemy within its scan range. The opponent's units scan as far as
  they see.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from sc2pool.standin import unit_types
from sc2pool.standin.abilities import OrderKind
from sc2pool.standin.world import ENEMY, ME, NEUTRAL, Bools, Floats, Ints, World

MIN_SCAN = 5.0
SCAN_MARGIN = 0.5
"""Units look for targets a little beyond their weapon's range, and at least MIN_SCAN far."""

PUSH_SHARE = 0.25
"""Share of an overlap by which each of two units gives way in one loop."""


class Roster:
    """The units that can move, and what follows from who they are."""

    def __init__(self, world: World) -> None:
        self.version = world.population_version
        self.rows = np.flatnonzero(unit_types.MOBILE[world.type_row])
        types = world.type_row[self.rows]
        owner = world.owner[self.rows]
        radius = unit_types.RADIUS[types]
        self.radius_sum = radius[:, None] + radius[None, :]
        np.fill_diagonal(self.radius_sum, -np.inf)  # nobody is in their own way
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
        # One more element than rows: what is nowhere, row -1, has index -1 as well.
        self.index_of_row = np.full(world.count + 1, -1)
        self.index_of_row[self.rows] = self.index


class Geometry(NamedTuple):
    """Positions of the roster relative to each other; [i, j] is seen from i."""

    offset: Floats
    distance: Floats
    gap: Floats
    """Distance between the edges: negative where two overlap, infinite from a unit to itself."""


def measure(world: World, roster: Roster) -> Geometry:
    """The present geometry of the roster."""
    pos = world.pos[roster.rows]
    offset = pos[None, :, :] - pos[:, None, :]
    distance = np.sqrt(offset[:, :, 0] ** 2 + offset[:, :, 1] ** 2)
    return Geometry(offset, distance, distance - roster.radius_sum)


class Engagement(NamedTuple):
    """What the fighting of this loop means for walking; arrays run over the roster."""

    target: Ints
    """Index into the roster of the unit each one is after, -1 for none."""
    in_range: Bools


def engage(world: World, roster: Roster, geometry: Geometry) -> Engagement:
    """Choose targets, fire what is ready, and book the damage."""
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
    # A weapon that was ready within the last loop keeps the fraction it waited, so that steady
    # fire has exactly the period of the weapon though loops are whole.
    ready = world.ready_at[shooters]
    start = np.where(world.loop - ready < 1.0, ready, float(world.loop))
    world.ready_at[shooters] = start + roster.cooldown_loops[firing]
    aim = world.pos[rows[target]] - world.pos[shooters]
    world.facing[shooters] = np.arctan2(aim[:, 1], aim[:, 0]) % (2 * np.pi)


def push_apart(roster: Roster, geometry: Geometry) -> Floats | None:
    """How far each of the roster is pushed by those it overlaps; None if nobody is."""
    overlap = np.minimum(geometry.gap, 0.0)
    if not overlap.any():
        return None
    # Two units on the very same spot part along the x axis, the older one to the left.
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
    """Loops in which, at these velocities, nobody comes to touch or scan anybody new."""
    closing = velocity[:, None, :] - velocity[None, :, :]
    speed = np.sqrt((closing**2).sum(axis=2))
    slack = np.minimum(geometry.gap, geometry.gap + roster.not_a_target - roster.scan[:, None])
    with np.errstate(divide="ignore", invalid="ignore"):
        loops = np.where(speed > 0.0, slack / speed, np.inf)
    return float(loops.min())
