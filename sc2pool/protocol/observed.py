"""One observation, decoded only as far as a step needs it.

    Payload ─► Head: id, status, errors, game loop, score, results; the raw data stays bytes
                 ├─► RawColumns: a column per field instead of an object per unit
                 └─► RawUnits: each unit's bytes, so that only the selected units are decoded.

Most of an observation is grids and units that a task does not read. To build objects for all grids
and units would be most of a client's work. The types here are made from the API's own descriptors,
with the same field names and numbers, so `replies` can check a `Head` as if it were a `Response`.

The columns use a rule of the wire format: if a message field that is not repeated occurs several
times, its values are *merged*, and their repeated fields are concatenated. So units that are sent
one after another can be read as one unit whose fields are lists. See "Last One Wins" in
https://protobuf.dev/programming-guides/encoding/.

A task gets an observation as an `Observed`, which decodes each of its parts on first use:

    The attributes `game_loop` and `score` are decoded on arrival.
    `plain` is the reply as the compiled path has read it, or None.
    `columns` has a column for each field that every unit has.
    `messages(rows)` returns the complete messages of a few units.
    `response` is the whole `sc2api_pb2.ResponseObservation`.

Rules:
* A part is decoded only on first use, which raises `GameFault` if it cannot be decoded.
* NaN and infinite numbers, which the protocol's types allow, raise `GameFault` as well. If a NaN
  reached the task's hooks, its effects would count as the user's errors.
* One sum checks many numbers, because a sum is finite only if all its terms are. (The terms have 32
  bits, so the sum cannot overflow.) If a sum is not finite, the numbers are checked one by one.

`PendingEvents` keeps the events that a game reports only once. Deaths, alerts, errors of actions,
chat and results are only in the first observation after they happened. Some observations are not
used: those around a pause, and the one before the result is known. Rule: the events of unused
observations are delivered in order with the next used observation. If there are no such events, the
used observation stays undecoded.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property
from math import isfinite
from operator import attrgetter
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from google.protobuf import (  # type: ignore[import-untyped]
    descriptor_pb2,
    descriptor_pool,
    message_factory,
)
from google.protobuf.message import DecodeError  # type: ignore[import-untyped]
from s2clientprotocol import common_pb2, raw_pb2, score_pb2
from s2clientprotocol import sc2api_pb2 as sc_pb

from sc2pool.errors import FaultKind, GameFault

if TYPE_CHECKING:
    from sc2pool._fast import Plain

_Field = descriptor_pb2.FieldDescriptorProto
_PACKAGE: Final = "sc2pool.sparse"

_BYTES: Final = "bytes"
_COLUMN: Final = "column"

_UNIT_COLUMNS: Final = (
    "tag",
    "unit_type",
    "alliance",
    "health",
    "shield",
    "energy",
    "weapon_cooldown",
)

_TYPES: Final[dict[str, tuple[Any, dict[str, str]]]] = {
    "Response": (sc_pb.Response, {"observation": "ResponseObservation"}),
    "ResponseObservation": (
        sc_pb.ResponseObservation,
        {"observation": "Observation", "player_result": "PlayerResult"},
    ),
    "PlayerResult": (sc_pb.PlayerResult, {}),
    "Observation": (
        sc_pb.Observation,
        {"player_common": _BYTES, "score": "Score", "raw_data": _BYTES},
    ),
    "Score": (score_pb2.Score, {}),
    "ObservationRaw": (raw_pb2.ObservationRaw, {"units": "Unit"}),
    "Unit": (
        raw_pb2.Unit,
        {"pos": "Point"} | dict.fromkeys(_UNIT_COLUMNS, _COLUMN),
    ),
    "Point": (common_pb2.Point, {"x": _COLUMN, "y": _COLUMN, "z": _COLUMN}),
    "RawUnits": (raw_pb2.ObservationRaw, {"units": _BYTES}),
}
"""The types of this module, each with the API's type that it reads. A listed field is read as
a type of this module, as undecoded bytes, or as a column. A field that is not listed is read
unchanged if it is a plain value, and as bytes if it is a message."""

_ONCE: Final = frozenset({"ObservationRaw"})
"""Types whose listed fields are read as one merged message instead of repeated ones."""


def _descriptor(name: str) -> Any:
    original, fates = _TYPES[name]
    proto = descriptor_pb2.DescriptorProto()
    original.DESCRIPTOR.CopyToProto(proto)
    made = descriptor_pb2.DescriptorProto(name=name, oneof_decl=proto.oneof_decl)
    for field in proto.field:
        fate = fates.get(field.name)
        if fate == _COLUMN:
            field.label = _Field.LABEL_REPEATED
            field.options.packed = True
        elif name in _ONCE and fate is not None:
            field.label = _Field.LABEL_OPTIONAL
        if field.type == _Field.TYPE_ENUM:
            field.type = _Field.TYPE_INT32  # an enum is sent as a number of this type
            field.ClearField("type_name")
            field.ClearField("default_value")
        elif field.type == _Field.TYPE_MESSAGE and fate in _TYPES:
            field.type_name = f".{_PACKAGE}.{fate}"
        elif field.type == _Field.TYPE_MESSAGE:
            field.type = _Field.TYPE_BYTES
            field.ClearField("type_name")
        made.field.append(field)
    return made


def _make(name: str) -> Any:
    return message_factory.GetMessageClass(_POOL.FindMessageTypeByName(f"{_PACKAGE}.{name}"))


_POOL: Final = descriptor_pool.DescriptorPool()
_POOL.Add(
    descriptor_pb2.FileDescriptorProto(
        name="sc2pool/sparse.proto",
        package=_PACKAGE,
        syntax="proto2",
        message_type=[_descriptor(name) for name in _TYPES],
    )
)

Head: Final = _make("Response")
"""A reply. The observation in a `Head` is decoded without its raw data."""


class SparseReply(NamedTuple):
    """A reply to a request for an observation."""

    payload: bytes
    """The serialized `Response`."""
    head: Any
    """The payload, decoded as a `Head`."""

    @property
    def status(self) -> int:
        """The game's status."""
        return int(self.head.status)


RawColumns: Final = _make("ObservationRaw")
"""An `ObservationRaw` whose `units` is one message of columns: `tag`, `unit_type`, `alliance`,
`health`, `shield`, `energy`, `weapon_cooldown`, `pos.x`, `pos.y` and `pos.z`, in the order of the
units. The columns have the same length unless a unit lacks a field."""

RawUnits: Final = _make("RawUnits")
"""An `ObservationRaw` whose `units` are serialized `raw_pb2.Unit`s."""


class UnitColumns(NamedTuple):
    """The fields of all visible units: a column for each field, in the order of the units."""

    tag: Sequence[int]
    unit_type: Sequence[int]
    alliance: Sequence[int]
    x: Sequence[float]
    y: Sequence[float]


class Observed:
    """One observation.

    Args:
        payload: A serialized `Response` with an observation.
        read: The payload read by the compiled path, or decoded as a `Head`.

    Attributes:
        game_loop: The observation's game loop.
        score: The game's own score so far.
        plain: The payload as read by the compiled path; None if it has not read the payload.
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
        """Make an `Observed` from a decoded observation."""
        payload = sc_pb.Response(observation=response).SerializeToString()
        return cls(payload, Head.FromString(payload))

    @cached_property
    def response(self) -> sc_pb.ResponseObservation:
        """The whole reply.

        Raises:
            GameFault: BAD_REPLY; the reply cannot be decoded, or a number in it is not finite.
        """
        try:
            reply: sc_pb.Response = sc_pb.Response.FromString(self._payload)
        except DecodeError as error:
            raise _undecodable(error) from None
        # The compiled path has checked all numbers of all units.
        if self.plain is None and not isfinite(sum(map(sum, _numbers_of_unit(self._units)))):
            _complain_of_columns(self._units)
        # The score itself is a whole number, so only its details are checked.
        details = self._head.score.score_details
        if _ENDS_LIKE_NAN.search(details):
            decoded = score_pb2.ScoreDetails.FromString(details)
            _complain("the score", _DETAILS, attrgetter(*_DETAILS)(decoded))
        return reply.observation

    @property
    def observation(self) -> sc_pb.Observation:
        """The whole state in the reply; raises the errors of `response`."""
        return self.response.observation

    @cached_property
    def columns(self) -> UnitColumns:
        """The visible units as columns.

        Raises:
            GameFault: BAD_REPLY; the units cannot be decoded, or a coordinate is not finite.
        """
        if self.plain is not None:
            return UnitColumns(*self.plain.columns())
        units = self._units
        if not isfinite(sum(units.pos.x) + sum(units.pos.y)):
            _complain_of_columns(units)
        columns = UnitColumns(units.tag, units.unit_type, units.alliance, units.pos.x, units.pos.y)
        if len(set(map(len, columns))) == 1:
            return columns
        return columns_of(self.response.observation.raw_data.units)

    def messages(self, rows: Iterable[int]) -> list[raw_pb2.Unit]:
        """The units in these rows of the columns; each unit is decoded on its first use.

        Raises:
            GameFault: BAD_REPLY; a unit cannot be decoded, or a number of a unit is not finite.
        """
        return [self._decoded.get(row) or self._decode(row) for row in rows]

    def _decode(self, row: int) -> raw_pb2.Unit:
        try:
            unit: raw_pb2.Unit = raw_pb2.Unit.FromString(self._serialized_units[row])
        except DecodeError as error:
            raise _undecodable(error) from None
        place = unit.pos  # faster than `_numbers_of_unit`
        vitals = unit.health + unit.shield + unit.energy + unit.weapon_cooldown
        if not isfinite(place.x + place.y + place.z + vitals):
            _complain("a unit", _NAMES, _numbers_of_unit(unit))
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


_NAMES: Final = ("pos.x", "pos.y", "pos.z", "health", "shield", "energy", "weapon_cooldown")
_numbers_of_unit: Final = attrgetter(*_NAMES)
_ENDS_LIKE_NAN: Final = re.compile(rb"[\x80-\xff][\x7f\xff]")
"""The last two bytes of a little-endian 32-bit number that is NaN or infinite. The bytes of two
neighbouring numbers may match, too, so a match must be checked."""


def _complain_of_columns(columns: Any) -> None:
    for name, column in zip(_NAMES, _numbers_of_unit(columns), strict=True):
        _complain("a unit", [name] * len(column), column)


def _complain(whose: str, names: Iterable[str], numbers: Iterable[float]) -> None:
    for name, number in zip(names, numbers, strict=True):
        if not isfinite(number):
            detail = f"the {name} of {whose} is {number}, expected a finite number"
            raise GameFault(FaultKind.BAD_REPLY, detail)


def _names_in(message_type: Any, before: str = "") -> Iterator[str]:
    """The names of all fields with numbers, in a message type and in its nested messages."""
    for field in message_type.fields:
        if field.message_type is None:
            yield before + field.name
        else:
            yield from _names_in(field.message_type, f"{before}{field.name}.")


_DETAILS: Final = tuple(_names_in(score_pb2.ScoreDetails.DESCRIPTOR))


class PendingEvents:
    """The events of observations that were not used."""

    def __init__(self) -> None:
        self._events: sc_pb.ResponseObservation | None = None

    def clear(self) -> None:
        """Forget the kept events, because another episode begins."""
        self._events = None

    def keep(self, observed: Observed) -> None:
        """Keep the events of an observation that is not used."""
        events = events_of(observed.response)
        if events is not None:
            self._events = events if self._events is None else merged(self._events, events)

    def deliver(self, observed: Observed) -> Observed:
        """Return this observation, which is used, with all kept events added."""
        if self._events is None:
            return observed
        events, self._events = self._events, None
        return Observed.of(merged(events, observed.response))


def events_of(response: sc_pb.ResponseObservation) -> sc_pb.ResponseObservation | None:
    """The events in a response that are reported only once; None if it has no such events."""
    events = sc_pb.ResponseObservation(
        actions=response.actions,
        action_errors=response.action_errors,
        chat=response.chat,
        player_result=response.player_result,
    )
    if response.observation.alerts:
        events.observation.alerts.extend(response.observation.alerts)
    dead = response.observation.raw_data.event.dead_units
    if dead:
        events.observation.raw_data.event.dead_units.extend(dead)
    return events if events.ListFields() else None


def merged(
    earlier: sc_pb.ResponseObservation, newest: sc_pb.ResponseObservation
) -> sc_pb.ResponseObservation:
    """The newer response, with the earlier response's events before its own events."""
    whole = sc_pb.ResponseObservation()
    whole.CopyFrom(earlier)
    if newest.player_result:
        whole.ClearField("player_result")  # otherwise the merge would list the same result twice
    whole.MergeFrom(newest)
    return whole
