"""Replies assembled from bytes: an observation that is serialized once, plus the changed fields.

The bytes of a reply to an observation request are made of these parts, in this order:
* The head of `Response.observation`, with all lengths.
* The prepared bytes of the observation, without its last field `game_loop`.
* The field `game_loop`, and at the end of the episode the field `player_result`.
* The end of every reply, with `Response.id` and `Response.status`.

The bytes always equal those that protobuf would write for the whole message.
"""

from __future__ import annotations

from collections.abc import Iterable

from google.protobuf.message import Message  # type: ignore[import-untyped]
from s2clientprotocol import sc2api_pb2 as sc_pb

_VARINT, _BYTES = 0, 2
"""Protobuf's wire types of a number, and of a field that begins with its length."""
_SHORT = [bytes([value]) for value in range(0x80)]


def varint(value: int) -> bytes:
    """A number in protobuf's encoding: seven bits per byte, the lowest first."""
    if value < 0x80:
        return _SHORT[value]
    if value < 0x4000:
        return bytes((value & 0x7F | 0x80, value >> 7))
    if value < 0x200000:
        return bytes((value & 0x7F | 0x80, value >> 7 & 0x7F | 0x80, value >> 14))
    return bytes((value & 0x7F | 0x80,)) + varint(value >> 7)


def _tag(message: type[Message], field: str, wire_type: int) -> bytes:
    return varint(message.DESCRIPTOR.fields_by_name[field].number << 3 | wire_type)


_OBSERVATION = _tag(sc_pb.Response, "observation", _BYTES)
_SEEN = _tag(sc_pb.ResponseObservation, "observation", _BYTES)
_GAME_LOOP = _tag(sc_pb.Observation, "game_loop", _VARINT)
_DONE = _tag(sc_pb.ResponseObservation, "actions", _BYTES)
_DONE_AT = _tag(sc_pb.Action, "game_loop", _VARINT)
_STEP = _tag(sc_pb.Response, "step", _BYTES)
_SIMULATION_LOOP = _tag(sc_pb.ResponseStep, "simulation_loop", _VARINT)
_ACTION = _tag(sc_pb.Response, "action", _BYTES)
_RESULT = _tag(sc_pb.ResponseAction, "result", _VARINT)
_ID = _tag(sc_pb.Response, "id", _VARINT)
_STATUS = _tag(sc_pb.Response, "status", _VARINT)


def game_loop(loop: int) -> bytes:
    """The field `game_loop`, which is the last one of `ResponseObservation.observation`."""
    return _GAME_LOOP + varint(loop)


def action_done(action: bytes, loop: int) -> bytes:
    """An entry of `actions` in an observation reply, with `loop` as the loop of the action."""
    content = action + _DONE_AT + varint(loop)
    return b"".join((_DONE, varint(len(content)), content))


def observation_reply(
    before: bytes, seen: bytes, after: bytes, tail: bytes, more: bytes = b""
) -> bytes:
    """The reply to an observation request, from serialized parts.

    Args:
        before, after: the fields before and after `ResponseObservation.observation`.
        seen: the content of `ResponseObservation.observation`.
        tail: the end of the reply (see `reply_tail`).
        more: the last fields of the observation, if they are missing in `seen`.
    """
    seen_bytes = len(seen) + len(more)
    size = varint(seen_bytes)
    content_bytes = len(before) + len(_SEEN) + len(size) + seen_bytes + len(after)
    parts = (_OBSERVATION, varint(content_bytes), before, _SEEN, size, seen, more, after, tail)
    return b"".join(parts)


def step_reply(simulation_loop: int, tail: bytes) -> bytes:
    """The reply to a step."""
    number = varint(simulation_loop)
    return b"".join((_STEP, _SHORT[1 + len(number)], _SIMULATION_LOOP, number, tail))


def action_reply(results: Iterable[int], tail: bytes) -> bytes:
    """The reply to an action request: one result for each action."""
    content = b"".join([_RESULT + varint(result) for result in results])
    return b"".join((_ACTION, varint(len(content)), content, tail))


def reply_tail(request: sc_pb.Request, status: int) -> bytes:
    """The end of every reply: the request's id, if it has one, and the status."""
    if request.HasField("id"):
        return _ID + varint(request.id) + _STATUS + varint(status)
    return _STATUS + varint(status)
