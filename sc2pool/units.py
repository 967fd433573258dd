"""Units of one observation as numpy arrays; only the needed parts of the message are decoded.

    marines, roaches = select(task.lazy_observation, Kind("Marine"), Kind("Roach", ENEMY))
    marines.positions  # map coordinates, (n, 2) float64
    health(roaches)  # hit points, (n,) float64

Rules: tags and positions are read as columns, and every other attribute (health, cooldown) has a
function. In these functions the pure-Python step path decodes the messages of the selected units;
the compiled step path does not decode messages. Units are in the order of their tags, so a unit
keeps its row until another unit of its kind appears or disappears. `with_tags` follows units by
their tags.
"""

from __future__ import annotations

import difflib
import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cache
from numbers import Integral
from pathlib import Path
from typing import NamedTuple, Self

import numpy as np
from numpy.typing import NDArray
from s2clientprotocol import raw_pb2
from s2clientprotocol import sc2api_pb2 as sc_pb

from sc2pool.errors import ConfigError
from sc2pool.protocol.observed import Observed, UnitColumns, columns_of

Floats = NDArray[np.float64]
_FLOAT64 = np.dtype(np.float64)

OWN, ENEMY, NEUTRAL = raw_pb2.Self, raw_pb2.Enemy, raw_pb2.Neutral
"""Sides, as `raw_pb2.Alliance` values."""
_SIDES = tuple(raw_pb2.Alliance.values())


@cache
def unit_ids() -> dict[str, int]:
    """The unit types' ids by their names in the game.

    The source is the game's data tables of patch 5.0.3, without dummies, and only with ids that
    python-sc2's `UnitTypeId` confirms. Only `NaturalMinerals` is from python-sc2, because the
    tables lack its name.
    """
    return dict(json.loads(Path(__file__).with_name("unit_ids.json").read_text()))


def unit_id(name: str) -> int:
    """The id of a unit type.

    Args:
        name: The name in the game, such as "Marine", "SiegeTankSieged", "MineralField".

    Raises:
        ConfigError: no unit type has this name.
    """
    found = unit_ids().get(name)
    if found is None:
        by_lower = {known.lower(): known for known in unit_ids()}
        close = difflib.get_close_matches(name.lower().replace("_", ""), by_lower, n=3)
        hint = f"; similar: {', '.join(by_lower[known] for known in close)}" if close else ""
        raise ConfigError(f"no unit type is called {name!r}{hint}")
    return found


class _Kind(NamedTuple):
    unit_type: int
    alliance: int


class Kind(_Kind):
    """A unit type on one side, such as `Kind("Marine")` or `Kind("Roach", ENEMY)`.

    Attributes:
        unit_type: The unit type's id.
        alliance: A `raw_pb2.Alliance` value.
    """

    __slots__ = ()

    def __new__(cls, unit: str | int, alliance: int = OWN) -> Self:
        """Make a kind from a unit type and a side.

        Args:
            unit: The unit type's name in the game, or its id.
            alliance: `OWN`, `ENEMY` or `NEUTRAL`, or another `raw_pb2.Alliance` value.

        Raises:
            ConfigError: the name or the side is unknown, or the id is out of range.
        """
        number = unit_id(unit) if isinstance(unit, str) else unit
        if not isinstance(number, Integral) or not 0 <= number < 2**32:
            raise ConfigError(f"a unit type is a name or an id of 32 bits, got {unit!r}")
        if alliance not in _SIDES:
            raise ConfigError(f"a unit's side is OWN, ENEMY or NEUTRAL, got {alliance!r}")
        return super().__new__(cls, number, alliance)


@dataclass(slots=True)  # not frozen: making a frozen object takes as long as finding the units
class Units:
    """Some units of one observation, in the order of their tags.

    Attributes:
        tags: The units' tags, for commands.
        positions: The map coordinates, shape (n, 2), x to the right and y up.
    """

    tags: list[int]
    positions: Floats
    _source: Observed | _Whole
    _rows: list[int]

    def __len__(self) -> int:
        return len(self.tags)

    @property
    def messages(self) -> list[raw_pb2.Unit]:
        """The units' messages, for attributes for which this module has no array."""
        return self._source.messages(self._rows)


def select(observation: Observed | sc_pb.Observation, *kinds: Kind) -> list[Units]:
    """The visible units of each kind, one `Units` per kind, in the order of the arguments.

    Args:
        observation: A task's `lazy_observation`, which is faster, or its `observation`.
        kinds: The kinds to select.

    Raises:
        ConfigError: an argument is not a `Kind`.
    """
    for kind in kinds:
        if not isinstance(kind, Kind):
            raise ConfigError(f'kinds are Kind objects, such as Kind("Marine"), got {kind!r:.80}')
    source = observation if isinstance(observation, Observed) else _Whole(observation)
    plain = source.plain
    if plain is not None:
        return [_found(source, *plain.find(*kind)) for kind in kinds]
    columns = source.columns
    alliances = columns.alliance
    found: dict[tuple[int, int], list[int]] = {kind: [] for kind in kinds}
    wanted = {kind.unit_type for kind in kinds}
    types = list(columns.unit_type)
    for row in [row for row, unit_type in enumerate(types) if unit_type in wanted]:
        rows = found.get((types[row], alliances[row]))
        if rows is not None:
            rows.append(row)
    in_tag_order = (sorted(found[kind], key=columns.tag.__getitem__) for kind in kinds)
    tag = columns.tag
    return [_at_rows(source, columns, [tag[i] for i in rows], rows) for rows in in_tag_order]


def with_tags(
    observation: Observed | sc_pb.Observation, tags: Sequence[int]
) -> tuple[NDArray[np.bool_], Units]:
    """The units with these tags that are in the observation.

    Returns:
        An array, bool (len(tags),), that is True for each unit in the observation; and the units in
        the observation, in the order of `tags`.
    """
    source = observation if isinstance(observation, Observed) else _Whole(observation)
    columns = source.columns
    row_of = {tag: row for row, tag in enumerate(columns.tag)}
    there = [tag for tag in tags if tag in row_of]
    is_there = np.array([tag in row_of for tag in tags], np.bool_)
    return is_there, _at_rows(source, columns, there, [row_of[tag] for tag in there])


class _Whole:
    """A whole observation as a source of units."""

    plain = None

    def __init__(self, observation: sc_pb.Observation) -> None:
        self._units = observation.raw_data.units
        self.columns = columns_of(self._units)

    def messages(self, rows: Iterable[int]) -> list[raw_pb2.Unit]:
        return [self._units[row] for row in rows]


def health(units: Units) -> Floats:
    """Hit points of each unit, shape (n,)."""
    return _numbers(units, "health")


def shield(units: Units) -> Floats:
    """Shield points of each unit, shape (n,); 0 for units without a shield."""
    return _numbers(units, "shield")


def weapon_cooldown(units: Units) -> Floats:
    """Game loops until each unit's weapon is ready, shape (n,); 0 if it is ready."""
    return _numbers(units, "weapon_cooldown")


def distances(from_positions: Floats, to_positions: Floats) -> Floats:
    """The distances of all pairs, shape (len(from_positions), len(to_positions))."""
    offsets = to_positions[None, :, :] - from_positions[:, None, :]
    return np.hypot(offsets[..., 0], offsets[..., 1])


def _numbers(units: Units, name: str) -> Floats:
    plain = units._source.plain
    if plain is not None:
        return np.frombuffer(plain.numbers(name, units._rows))
    return np.array([getattr(unit, name) for unit in units.messages], dtype=np.float64)


def _found(
    source: Observed | _Whole, tags: list[int], rows: list[int], positions: bytearray
) -> Units:
    # One call is faster than two; this matters, because each step calls `select`.
    return Units(tags, np.ndarray((len(tags), 2), _FLOAT64, positions), source, rows)


def _at_rows(
    source: Observed | _Whole, columns: UnitColumns, tags: list[int], rows: list[int]
) -> Units:
    x, y = columns.x, columns.y
    positions = np.array([(x[row], y[row]) for row in rows], np.float64).reshape(-1, 2)
    return Units(tags, positions, source, rows)
