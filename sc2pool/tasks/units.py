"""Units of one observation as numpy arrays, read as sparingly as the message allows.

    marines, roaches = select(observation, OWN_MARINES, ENEMY_ROACHES)
    marines.positions          # (n, 2) float64, map coordinates
    health(roaches)            # (n,) float64, hit points

Rules: every attribute read from a protobuf message costs most of a microsecond, so one pass serves
all the kinds asked for, and what only some tasks need (health, cooldowns) is read by a function of
its own. Units come in the order of their tags: a unit keeps its row for as long as no other of
its kind comes or goes.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from s2clientprotocol import raw_pb2
from s2clientprotocol import sc2api_pb2 as sc_pb

Floats = NDArray[np.float64]

MARINE = 48
ROACH = 110
BEACON = 317
MINERAL_SHARD = 1680


class Kind(NamedTuple):
    """A unit type on one side; `alliance` is a `raw_pb2.Alliance` value."""

    unit_type: int
    alliance: int


OWN_MARINES = Kind(MARINE, raw_pb2.Self)
ENEMY_ROACHES = Kind(ROACH, raw_pb2.Enemy)
BEACONS = Kind(BEACON, raw_pb2.Neutral)
MINERAL_SHARDS = Kind(MINERAL_SHARD, raw_pb2.Neutral)


@dataclass(frozen=True, slots=True)
class Units:
    """Some units of one observation, in the order of their tags.

    Attributes:
        messages: the units' own messages, for whatever has no array here.
        tags: what commands are addressed to.
        positions: (n, 2) map coordinates, x to the right and y up.
    """

    messages: list[raw_pb2.Unit]
    tags: list[int]
    positions: Floats

    def __len__(self) -> int:
        return len(self.tags)


def select(observation: sc_pb.Observation, *kinds: Kind) -> list[Units]:
    """The visible units of each kind, one `Units` per kind, in the order of the arguments."""
    found: dict[Kind, list[raw_pb2.Unit]] = {kind: [] for kind in kinds}
    wanted_types = {kind.unit_type for kind in kinds}
    for unit in observation.raw_data.units:
        unit_type = unit.unit_type
        if unit_type in wanted_types:
            messages = found.get(Kind(unit_type, unit.alliance))
            if messages is not None:
                messages.append(unit)
    return [_in_tag_order(messages) for messages in found.values()]


def health(units: Units) -> Floats:
    """Hit points of each unit, shape (n,)."""
    return np.array([unit.health for unit in units.messages], dtype=np.float64)


def weapon_cooldown(units: Units) -> Floats:
    """Game loops until each unit's weapon is ready, shape (n,); 0 where it is ready."""
    return np.array([unit.weapon_cooldown for unit in units.messages], dtype=np.float64)


def distances(from_positions: Floats, to_positions: Floats) -> Floats:
    """All pairwise distances, shape (len(from_positions), len(to_positions))."""
    offsets = to_positions[None, :, :] - from_positions[:, None, :]
    return np.hypot(offsets[..., 0], offsets[..., 1])


def _in_tag_order(messages: list[raw_pb2.Unit]) -> Units:
    tagged = sorted(((unit.tag, unit) for unit in messages), key=lambda pair: pair[0])
    points = []
    for _, unit in tagged:
        position = unit.pos
        points.append((position.x, position.y))
    return Units(
        messages=[unit for _, unit in tagged],
        tags=[tag for tag, _ in tagged],
        positions=np.array(points, dtype=np.float64).reshape(-1, 2),
    )
