"""Message types for the API's bytes that decode only the parts that a step needs.

    payload ─► Head: id, status, errors, game loop, score, results; the raw data stays bytes
                 ├─► RawColumns: a column per field instead of an object per unit
                 └─► RawUnits: each unit's bytes, to decode only the selected ones

An observation mostly consists of grids and units that a task does not read. Building objects for
them is most of a client's work. The types here are made from the API's own descriptors, with the
same field names and numbers, so `replies` can check a `Head` like a `Response`.

The columns use a rule of the wire format: if a singular message field occurs several times, the
occurrences are *merged*, which concatenates their repeated fields. So units that are sent one after
another can be read as one unit whose fields are lists. See "Last One Wins" in
https://protobuf.dev/programming-guides/encoding/.
"""

from __future__ import annotations

from typing import Any, Final, NamedTuple

from google.protobuf import (  # type: ignore[import-untyped]
    descriptor_pb2,
    descriptor_pool,
    message_factory,
)
from s2clientprotocol import common_pb2, raw_pb2, score_pb2
from s2clientprotocol import sc2api_pb2 as sc_pb

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
"""The types of this module: the API's type that each one reads, and how some of its fields are
read. A field is read as another type of this module, as undecoded bytes, or as a column. Plain
values that are not listed are read unchanged, other messages as bytes."""

_ONCE: Final = frozenset({"ObservationRaw"})
"""Types whose repeated messages are merged into one."""


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
            field.type = _Field.TYPE_INT32  # on the wire, an enum is a number of this type
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
"""A reply. An observation in it is decoded without its raw data."""


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
