"""The values that units have on the layers: one row for each unit, and a first row of zeros.

If the client only remembers a unit, or has not detected a cloaked unit, the layers show only the
unit's type and owner. Only the client's own hallucinations are marked.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray
from s2clientprotocol import raw_pb2 as raw_pb

from sc2standin.map_reader.scenario import CARRIES_MINERALS, CARRIES_VESPENE
from sc2standin.simulation.fights.cloak import is_hidden
from sc2standin.simulation.sight import Snapshot
from sc2standin.simulation.units import NEUTRAL, Factory, Order, Site, Unit

Floats = NDArray[np.float64]

FULL = 255
"""The value in a layer that means a ratio of 1."""
COLUMNS = (
    "player_id",
    "player_relative",
    "unit_type",
    "selected",
    "unit_hit_points",
    "unit_hit_points_ratio",
    "unit_shields",
    "unit_shields_ratio",
    "unit_energy",
    "unit_energy_ratio",
    "hallucinations",
    "buffs",
    "active",
    "build_progress",
    "cloaked",
)
"""The layers that show units, in the order of their values in a row."""


def places(units: Sequence[Unit | Snapshot]) -> tuple[Floats, Floats, Floats]:
    """The x, y and radius of the units."""
    x, y, radius = (
        np.array(
            [(u.x, u.y, (u.kind if isinstance(u, Snapshot) else u.type).radius) for u in units],
            dtype=np.float64,
        )
        .reshape(-1, 3)
        .T
    )
    return x, y, radius


def relative(owner: int, player: int) -> raw_pb.Alliance.ValueType:
    """The alliance that an owner's units have for a player: own, enemy or neutral."""
    if owner == player:
        return raw_pb.Self
    return raw_pb.Neutral if owner == NEUTRAL else raw_pb.Enemy


def rows(
    units: Sequence[Unit | Snapshot], selected: frozenset[int], player: int, loop: int
) -> NDArray[np.int32]:
    """The rows with the values of these units.

    Args:
        selected: the tags of the selected units.
        player: the player who sees the units.
    """
    table = np.zeros((len(units) + 1, len(COLUMNS)), dtype=np.int32)
    if units:
        table[1:] = [_row(unit, selected, player, loop) for unit in units]
    return table


def _row(
    seen: Unit | Snapshot, selected: frozenset[int], player: int, loop: int
) -> tuple[int, ...]:
    if isinstance(seen, Snapshot):
        owner = seen.unit.owner
        return owner, relative(owner, player), seen.kind.id, *(0,) * (len(COLUMNS) - 3)
    kind = seen.type
    if kind.cloaked and is_hidden(seen, player):
        zeros = (0,) * (len(COLUMNS) - 4)
        return seen.owner, relative(seen.owner, player), kind.id, *zeros, kind.cloaked
    return (
        seen.owner,
        relative(seen.owner, player),
        kind.id,
        seen.tag in selected,
        max(0, int(seen.life)),
        ratio(seen.life, kind.life),
        int(seen.shields),
        ratio(seen.shields, kind.shields),
        int(seen.energy),
        ratio(seen.energy, kind.energy),
        kind.hallucination and seen.owner == player,
        next(iter(buffs_of(seen, loop, mine=True)), 0),
        is_producing(seen),
        int(FULL * progress(seen, loop)),
        kind.cloaked,
    )


def ratio(value: float, most: float) -> int:
    """A value's share of its maximum, as a number from 0 to 255."""
    return int(FULL * min(max(value / most, 0.0), 1.0)) if most else 0


def buffs_of(unit: Unit, loop: int, *, mine: bool) -> list[int]:
    """The ids of the buffs for a unit's stimpack and spells and, if `mine`, for its cargo."""
    minerals, vespene = unit.cargo if mine else (0, 0)
    carried = [CARRIES_MINERALS] * (minerals > 0) + [CARRIES_VESPENE] * (vespene > 0)
    stimmed = [unit.type.buff_id] if unit.type.buff_id else []
    return carried + stimmed + [buff for buff, until in unit.buffs.items() if until > loop]


def is_producing(unit: Unit) -> bool:
    """True for a structure whose current order makes something."""
    return isinstance(unit.job, Factory) and unit.order.makes is not None


def progress(unit: Unit, loop: int) -> float:
    """The progress of a structure's construction or, if built, of its first order: 0 to 1."""
    if isinstance(unit.job, Site):
        return _done(unit.job.left, unit.job.loops)
    return order_progress(unit, unit.order, 0, loop)


def order_progress(factory: Unit, order: Order, place: int, loop: int) -> float:
    """The progress of the order at this place of a structure's queue, 0 to 1."""
    job, made = factory.job, order.makes
    if isinstance(job, Factory) and made is not None and place < len(job.done_at):
        return _done(job.done_at[place] - loop, made.build_time_loops)
    return 0.0


def _done(left_loops: float, whole_loops: float) -> float:
    return min(max(1.0 - left_loops / whole_loops, 0.0), 1.0) if whole_loops else 0.0
