"""Are two observations the same, and if not, where do they first differ?

Unit tags are names that a game gives as it likes: a new game may call the same marine otherwise.
So tags are compared by the order in which they appear. Rule: all else has to be equal to the bit.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import zip_longest
from typing import Any, Final

from s2clientprotocol import sc2api_pb2 as sc_pb

Leaf = tuple[str, Any]
"""The path of a field, and its value."""

_END: Final[Leaf] = ("", "nothing")


class Tags:
    """Numbers for the tags of one run of observations, in the order of their appearance."""

    def __init__(self) -> None:
        self._numbers: dict[int, int] = {}

    def number(self, tag: int) -> int:
        """The tag's number; 0, which is no unit, stays 0."""
        return self._numbers.setdefault(tag, len(self._numbers) + 1) if tag else 0


def leaves(message: Any, tags: Tags, path: str = "") -> Iterator[Leaf]:
    """Every value in a message, with its path, in the order of the fields' numbers."""
    for field, value in message.ListFields():
        here = f"{path}.{field.name}" if path else field.name
        repeated = not isinstance(value, str | bytes) and hasattr(value, "__len__")
        for index, one in enumerate(value if repeated else (value,)):
            place = f"{here}[{index}]" if repeated else here
            if field.message_type is not None:
                yield place, "present"
                yield from leaves(one, tags, place)
            else:
                # Of all the numbers in an observation only tags have 64 bits without a sign.
                yield place, tags.number(one) if field.type == field.TYPE_UINT64 else one


def first_difference(ours: Sequence[sc_pb.Observation], theirs: Sequence[sc_pb.Observation]) -> str:
    """Where two runs of observations first differ, in words; empty if they are the same."""
    our_tags, their_tags = Tags(), Tags()
    for index, (one, other) in enumerate(zip(ours, theirs, strict=False)):
        pairs = zip_longest(leaves(one, our_tags), leaves(other, their_tags), fillvalue=_END)
        for mine, yours in pairs:
            if mine != yours:
                return f"observation {index}, {_differing(mine, yours)}"
    if len(ours) != len(theirs):
        return f"{len(ours)} observations on one side, {len(theirs)} on the other"
    return ""


def beginning(observation: sc_pb.Observation) -> tuple[Leaf, ...]:
    """All of an observation but its tags, as something that can be compared and hashed."""
    return tuple(leaves(observation, Tags()))


def _differing(mine: Leaf, yours: Leaf) -> str:
    if mine[0] == yours[0]:
        return f"{mine[0]}: {_short(mine[1])} and {_short(yours[1])}"
    return f"{mine[0] or 'its end'} on one side, {yours[0] or 'its end'} on the other"


def _short(value: Any) -> str:
    return f"{len(value)} bytes" if isinstance(value, bytes) else str(value)
