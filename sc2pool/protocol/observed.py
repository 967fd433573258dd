"""One observation of a task; each part is decoded on first use.

    Observed ── game_loop, score       decoded on arrival
             ── plain                  the compiled path's reading, if it took the reply
             ── columns                a column per field that every unit has
             ── messages(rows)         the complete messages of a few units
             ── response               the whole `sc2api_pb2.ResponseObservation`

Rule: a part is decoded once; bytes that cannot be decoded, and numbers that are not finite
(`finite`), raise `GameFault` then, as they would on arrival.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

from google.protobuf.message import DecodeError  # type: ignore[import-untyped]
from s2clientprotocol import raw_pb2
from s2clientprotocol import sc2api_pb2 as sc_pb

from sc2pool.errors import FaultKind, GameFault
from sc2pool.protocol import finite
from sc2pool.protocol.sparse import Head, RawColumns, RawUnits

if TYPE_CHECKING:
    from sc2pool._fast import Plain


class UnitColumns(NamedTuple):
    """The fields of every visible unit, each in the order of the units."""

    tag: Sequence[int]
    unit_type: Sequence[int]
    alliance: Sequence[int]
    x: Sequence[float]
    y: Sequence[float]


class Observed:
    """One observation.

    Args:
        payload: a serialized `Response` with an observation.
        read: the payload read by the compiled path, or decoded as a `sparse.Head`.

    Attributes:
        game_loop: of the observation.
        score: the game's own score so far.
        plain: what the compiled path has read; None if it took no part.
    """

    def __init__(self, payload: bytes, read: Any) -> None:
        self._payload = payload
        self._decoded: dict[int, raw_pb2.Unit] = {}
        self.plain: Plain | None = None
        if isinstance(read, Head):
            self._head = read.observation.observation
            self.game_loop = int(self._head.game_loop)
            self.score = int(self._head.score.score)
        else:
            self.plain = read
            self.game_loop = read.game_loop
            self.score = read.score

    @classmethod
    def of(cls, response: sc_pb.ResponseObservation) -> Observed:
        """An observation that is already decoded."""
        payload = sc_pb.Response(observation=response).SerializeToString()
        return cls(payload, Head.FromString(payload))

    @cached_property
    def response(self) -> sc_pb.ResponseObservation:
        """The whole reply.

        Raises:
            GameFault: BAD_REPLY; it cannot be decoded, or a number in it is not finite.
        """
        try:
            reply: sc_pb.Response = sc_pb.Response.FromString(self._payload)
        except DecodeError as error:
            raise _undecodable(error) from None
        if self.plain is None:  # else the compiled path has looked at all numbers of all units
            finite.require_units(self._units)
        finite.require_score(self._head.score.score_details)
        return reply.observation

    @property
    def observation(self) -> sc_pb.Observation:
        """The whole state in the reply; raises as `response` does."""
        return self.response.observation

    @cached_property
    def columns(self) -> UnitColumns:
        """The visible units, as columns.

        Raises:
            GameFault: BAD_REPLY; they cannot be decoded, or a place is not finite.
        """
        if self.plain is not None:
            return UnitColumns(*self.plain.columns())
        units = self._units
        finite.require_places(units)
        columns = UnitColumns(units.tag, units.unit_type, units.alliance, units.pos.x, units.pos.y)
        if len(set(map(len, columns))) == 1:
            return columns
        return columns_of(self.response.observation.raw_data.units)

    def messages(self, rows: Iterable[int]) -> list[raw_pb2.Unit]:
        """The units of these rows of the columns, each decoded on first use.

        Raises:
            GameFault: BAD_REPLY; one cannot be decoded, or a number of a unit is not finite.
        """
        return [self._decoded.get(row) or self._decode(row) for row in rows]

    def _decode(self, row: int) -> raw_pb2.Unit:
        try:
            unit: raw_pb2.Unit = raw_pb2.Unit.FromString(self._serialized_units[row])
        except DecodeError as error:
            raise _undecodable(error) from None
        finite.require_unit(unit)
        self._decoded[row] = unit
        return unit

    @cached_property
    def _head(self) -> Any:
        return Head.FromString(self._payload).observation.observation

    @cached_property
    def _units(self) -> Any:
        try:
            return RawColumns.FromString(self._head.raw_data).units
        except DecodeError as error:
            raise _undecodable(error) from None

    @cached_property
    def _serialized_units(self) -> list[bytes]:
        return list(RawUnits.FromString(self._head.raw_data).units)


def columns_of(units: Iterable[raw_pb2.Unit]) -> UnitColumns:
    """The columns of decoded units; a missing field has its default value."""
    messages = list(units)
    return UnitColumns(
        [unit.tag for unit in messages],
        [unit.unit_type for unit in messages],
        [unit.alliance for unit in messages],
        [unit.pos.x for unit in messages],
        [unit.pos.y for unit in messages],
    )


def _undecodable(error: Exception) -> GameFault:
    return GameFault(FaultKind.BAD_REPLY, f"the observation cannot be decoded: {error}")
